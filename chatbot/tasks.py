"""Ends background work for certain."""

import asyncio
from typing import Any

AGAIN_SECONDS = 0.2


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
