"""Durations on a machine that has other work, too."""

import os
import time
from pathlib import Path

NANOSECONDS = 1_000_000_000


class Stopwatch:
    """Runs from when it is made. Time in which what ran could not go on is left out.

    That is the time for which the threads of this process and of those that it started were
    ready and other work had the processor. So a limit may be as narrow as the claim that it
    proves, and holds on a machine that does ten things at once. Where the system does not tell
    (it is Linux that does), every second counts.
    """

    def __init__(self) -> None:
        self._held_up = _held_up()
        self._started = time.perf_counter()

    def seconds(self) -> float:
        """Return how long it has run."""
        passed = time.perf_counter() - self._started
        held_up = _held_up()
        more = {thread: held_up[thread] - self._held_up.get(thread, 0) for thread in held_up}
        return max(passed - sum(more.values()) / NANOSECONDS, 0)


def _held_up() -> dict[str, int]:
    """Return for how long each thread has waited for a processor."""
    found: dict[str, int] = {}
    processes = [os.getpid()]
    while processes:
        tasks = Path(f"/proc/{processes.pop()}/task")
        for task in tasks.glob("*"):
            try:
                found[str(task)] = int((task / "schedstat").read_text("ascii").split()[1])
                processes += map(int, (task / "children").read_text("ascii").split())
            except (OSError, ValueError, IndexError):  # it has ended, or is not told
                continue
    return found
