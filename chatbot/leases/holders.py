"""Tells the process that holds a lease, and whether it has died, where that is certain."""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

PROC = Path("/proc")
_START = 19  # the place of the start time in what follows the name of the program


def this_process() -> str:
    """Return what no other process of any machine is called, "" where that cannot be told.

    A number may be given again, and counts in its namespace alone: several containers may
    share a folder. So the machine's start and the namespace belong to it, and the time since.
    """
    return _named(os.getpid())


def has_died(holder: str) -> bool:
    """Whether this process is certainly dead: one that may be elsewhere is not."""
    place, _, process = holder.rpartition("/")
    if not place or place != this_process().rpartition("/")[0]:
        return False
    number, _, started = process.partition("@")
    try:
        os.kill(int(number), 0)  # only asks; Windows, where it would not, has no place
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    known = _started(number)
    return bool(known) and known != started


@lru_cache(maxsize=1)
def _named(number: int) -> str:
    with suppress(OSError):
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = (PROC / "self/ns/pid").readlink()
        # What is mounted there may be of another namespace.
        if (PROC / "self").readlink() == Path(str(number)) and (
            started := _started(str(number))
        ):
            return f"{boot}/{namespace}/{number}@{started}"
    return ""


def _started(number: str) -> str:
    """Return when a process began, in ticks since the machine did, "" where nobody says."""
    try:
        fields = (PROC / number / "stat").read_text(encoding="utf-8", errors="replace")
        return fields.rpartition(")")[2].split()[_START]
    except (OSError, IndexError):
        return ""
