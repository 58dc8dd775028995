"""Runs benchmarks, one after the other, each in a process of its own: `make bench`.

    python -m benchmarks [NAME ...]      all of them, or those named

Where those of `PAGE` ran, docs/figures.md is written.
"""

import asyncio
import importlib
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import page
from benchmarks.report import RESULTS, collected, progress

PAGE = ("turns", "served", "history", "start")
BENCHMARKS = (*PAGE, "retrieval", "routing", "scale", "chunks", "tracing")
INTERRUPTED = 130


def run_here(name: str) -> None:
    """Run one benchmark in this process, as `python -m` would."""
    main = importlib.import_module(f"benchmarks.{name}").main
    sys.argv = [f"benchmarks.{name}"]
    if inspect.iscoroutinefunction(main):
        asyncio.run(main())
    else:
        main()


def run(name: str, environment: Mapping[str, str]) -> int:
    """Run one benchmark in a process of its own and return its exit code."""
    command = [sys.executable, "-m", "benchmarks", "--here", name]
    with subprocess.Popen(command, env=environment, process_group=0) as process:  # noqa: S603 - our own
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()  # it ends what it started, and is waited for
            raise


def run_all(names: list[str]) -> int:
    """Run these, each in a process, and return how many failed."""
    failed = 0
    with TemporaryDirectory() as results:
        for name in names:
            progress(f"\n== python -m benchmarks {name}")
            failed += run(name, os.environ | {RESULTS: results}) != 0
        if found := collected(Path(results), PAGE):
            page.write(found)
            progress(f"\nwritten: {page.PAGE}, {page.PICTURE}")
    return failed


def main() -> int:
    """Run what is named, or all."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what it started is ended too
    here, names = sys.argv[1:2] == ["--here"], sys.argv[1:]
    if unknown := [name for name in names if name not in {*BENCHMARKS, "--here"}]:
        progress(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    try:
        if here:
            run_here(names[1])
            return 0
        return run_all(names or list(BENCHMARKS))
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
