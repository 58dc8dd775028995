"""Ends background work for certain."""

import asyncio
from contextlib import suppress
from typing import Any

AGAIN_SECONDS = 0.2


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
