"""Runs work side by side, and ends it in time."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from chatbot.knowledge.ragflow.errors import RagflowTimeoutError, too_late
from chatbot.tasks import end

T = TypeVar("T")


async def all_within(
    seconds: float, work: Iterable[Coroutine[Any, Any, T]]
) -> list[T | RagflowTimeoutError]:
    """Return the results in order, with an error for each that was not there in time."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.wait(tasks, timeout=max(seconds, 0))
        return [task.result() if task.done() else too_late(seconds) for task in tasks]
    finally:
        await end(*tasks)
