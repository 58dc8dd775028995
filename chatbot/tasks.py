"""Background work: begun once, ended for certain."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any

AGAIN_SECONDS = 0.2
CLOSE_SECONDS = 5.0

logger = logging.getLogger(__name__)


class Background:
    """Work that goes on behind the turns, one piece at a time for each key."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self, key: str, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Begin, unless something goes on under this key; tell whether it was begun.

        The work is no part of what begins it: it has its own context, so its own trace.
        """
        if self._is_closed or key in self._tasks:
            return False
        task = asyncio.create_task(work(), name=key, context=Context())
        self._tasks[key] = task
        task.add_done_callback(self._done)
        return True

    async def settle(self) -> None:
        """Return when nothing goes on any more."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self, *, seconds: float = CLOSE_SECONDS) -> None:
        """Begin nothing more; what goes on has so long to come to its end."""
        self._is_closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.settle()
        await end(*self._tasks.values())

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task.get_name()]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)


async def stop(task: asyncio.Task[Any], stopping: asyncio.Event, *, seconds: float) -> None:
    """Tell a task to stop and return when it has ended; after `seconds` it is cancelled.

    So a call that is under way ends by itself: MongoDB's driver leaves a connection open whose
    opening is cancelled.
    """
    stopping.set()
    await asyncio.wait({task}, timeout=seconds)
    await end(task)


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until it is time to stop."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stopping.wait()


def abandon(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks; nobody wants to know what came of them."""
    for task in tasks:
        task.cancel()
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and return when all have ended, whatever came of them.

    A library below may swallow a cancellation, so it is repeated until it is heeded.
    """
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # asked for, so that nobody is told that it was never retrieved
