"""Runs every benchmark, one after the other, each in a process of its own: `make bench`."""

import subprocess
import sys

BENCHMARKS = ("retrieval", "routing", "scale", "chunks", "turns")


def main() -> int:
    """Run them all and return how many failed."""
    failed = 0
    for name in BENCHMARKS:
        print(f"\n== python -m benchmarks.{name}", flush=True)  # noqa: T201 - a report
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        failed += subprocess.run(command, check=False).returncode != 0  # noqa: S603 - our own
    return failed


if __name__ == "__main__":
    sys.exit(main())
