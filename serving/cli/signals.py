"""Ends a command in order when the system asks for it, as Ctrl-C does."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

# A closed terminal sends SIGHUP, which Windows does not have.
ENDING = [
    number
    for name in ("SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Cancel the current task at the signals that end a process, so that it can clean up."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    if task is not None:
        for number in ENDING:
            with suppress(NotImplementedError):  # not in every system's event loop
                loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in ENDING:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)


def exit_on_signals() -> None:
    """Leave the main thread by `SystemExit` at the signals that end a process."""

    def leave(number: int, frame: FrameType | None) -> None:
        del frame
        raise SystemExit(128 + number)

    for number in ENDING:
        signal.signal(number, leave)
