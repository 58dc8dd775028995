"""What a benchmark hands in: tables, targets and charts, printed and kept for the page."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = "BENCHMARK_RESULTS"  # the folder that a run of several benchmarks collects them in


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of figures; the first column says whose."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """Return it as Markdown."""
        lines = [_row(self.columns), "|" + " --- |" * len(self.columns), *map(_row, self.rows)]
        note = f"{self.note}\n\n" if self.note else ""
        return f"## {self.title}\n\n{note}" + "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class Target:
    """What we set out to reach, and what came of it."""

    figure: str
    target: str
    measured: str
    met: bool


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Bars with their values; `target` is a line across them."""

    title: str
    bars: Mapping[str, float]
    unit: str = ""
    target: float | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that one benchmark found."""

    tables: Sequence[Table] = ()
    targets: Sequence[Target] = ()
    charts: Sequence[Chart] = ()

    def hand_in(self, name: str) -> None:
        """Print it, and keep it where several are collected."""
        for table in self.tables:
            sys.stdout.write(f"\n{table.markdown()}")
        if self.targets:
            sys.stdout.write(f"\n{targets_table(self.targets).markdown()}")
        sys.stdout.flush()
        if folder := os.environ.get(RESULTS):
            text = json.dumps(asdict(self), ensure_ascii=False)
            (Path(folder) / f"{name}.json").write_text(text, encoding="utf-8")


def collected(folder: Path, names: Sequence[str]) -> Report | None:
    """Return what these benchmarks handed in, in one, or nothing if one did not."""
    paths = [folder / f"{name}.json" for name in names]
    if not all(path.exists() for path in paths):
        return None
    found = [json.loads(path.read_text("utf-8")) for path in paths]
    return Report(
        tables=[Table(**table) for each in found for table in each["tables"]],
        targets=[Target(**target) for each in found for target in each["targets"]],
        charts=[Chart(**chart) for each in found for chart in each["charts"]],
    )


def targets_table(targets: Sequence[Target]) -> Table:
    """Return the targets, each met or not."""
    rows = [
        [each.figure, each.target, each.measured, "yes" if each.met else "**no**"]
        for each in targets
    ]
    return Table(title="Targets", columns=["ours", "target", "measured", "met"], rows=rows)


def progress(line: str) -> None:
    """Tell people what is going on; it belongs to no result."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
