"""Ends tasks that run beside the one that started them."""

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks that still run, and return when all have ended."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
