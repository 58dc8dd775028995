"""Writes docs/figures.md and its picture from what the benchmarks handed in."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.picture import drawn
from benchmarks.report import Report, targets_table
from benchmarks.systems import ROOT, installed

PAGE = ROOT / "docs" / "figures.md"
PICTURE = ROOT / "docs" / "images" / "figures.svg"
DESCRIBED = "Bars: times, CPU and throughput of ours and of the same steps in other ways"
BUSY = "other work was going on, so CPU, throughput and start are worse than when it is quiet"
HEAD = """# Figures

Made by `make bench`, which writes this page and takes about a quarter of an hour;
`make bench ARGS=turns` runs a part. {when}, on {machine}.

Ours is compared with the same steps in other ways: written by hand with httpx and with aiohttp,
as a Haystack pipeline, as a LlamaIndex workflow. All route by a tool call, put a follow-up in
context, retrieve from the same RAGFlow server and stream the answer of the same model server,
with the same prompts. The servers are scripted and local, in processes of their own; so is
each system, and only one works at a time. All take turns in every round, so that noise hits
them alike. Only ours keeps the conversation, checks citations, bounds times and bears services
that fail. It runs as `chatbot serve` runs it: Python looks for garbage less often.

{versions}

![{described}](images/figures.svg)

"""


def write(report: Report) -> None:
    """Write the page and the picture."""
    head = HEAD.format(
        when=datetime.now(UTC).strftime("%d %B %Y").lstrip("0"),
        machine=_machine(),
        versions=_versions(),
        described=DESCRIBED,
    )
    tables = [targets_table(report.targets), *report.tables]
    PAGE.write_text(head + "\n".join(each.markdown() for each in tables), encoding="utf-8")
    PICTURE.write_text(drawn(report.charts, DESCRIBED), encoding="utf-8")


def _machine() -> str:
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    described = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line for line in described.splitlines() if line.startswith("model name")]
    name = names[0].partition(":")[2].strip() if names else platform.machine()
    busy = os.getloadavg()[2]  # of the last quarter of an hour, most of which was this
    machine = f"{cores} cores ({name}), {memory:.0f} GiB, load {busy:.1f}"
    return f"{machine}: {BUSY}" if busy > cores else machine


def _versions() -> str:
    said = [f"Python {platform.python_version()}"]
    for way in installed().values():
        if way.framework:
            code = f"from importlib.metadata import version; print(version({way.framework!r}))"
            command = [way.python, "-c", code]
            found = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - our own
            said.append(f"{way.framework} {found.stdout.strip()}")
    return ", ".join(said) + "."
