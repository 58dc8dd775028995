"""A value that is loaded once for everybody and renewed behind their backs."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from chatbot.errors import KnowledgeBaseError
from chatbot.tasks import end

T = TypeVar("T")


class Renewed(Generic[T]):
    """The result of `load`, kept in memory.

    Up to `fresh_seconds` it is given out as it is; after that too, while it is loaded again in
    the background; after `stale_seconds` whoever asks waits for the new one, and gets the old
    one still if that fails. All who wait share one load.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[T]],
        *,
        fresh_seconds: float,
        stale_seconds: float | None = None,
    ) -> None:
        self._load = load
        self._fresh = fresh_seconds
        self._stale = fresh_seconds * 10 if stale_seconds is None else stale_seconds
        self._loaded: tuple[float, T] | None = None
        self._loading: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """Return the value.

        Raises:
            KnowledgeBaseError: It could not be loaded and there is no older one.
        """
        if self._loaded is None:
            return await asyncio.shield(self._renewal())
        since, value = self._loaded
        age = time.monotonic() - since
        if age > self._stale:
            with contextlib.suppress(KnowledgeBaseError):
                return await asyncio.shield(self._renewal())
        elif age > self._fresh:
            self._renewal()
        return value

    async def close(self) -> None:
        """End a load that is under way."""
        await end(*([self._loading] if self._loading else []))

    def _renewal(self) -> asyncio.Task[T]:
        if self._loading is None:
            self._loading = asyncio.create_task(self._renew())
            self._loading.add_done_callback(_retrieve_exception)
        return self._loading

    async def _renew(self) -> T:
        try:
            value = await self._load()
            self._loaded = (time.monotonic(), value)
        finally:
            self._loading = None
        return value


def _retrieve_exception(task: asyncio.Task[T]) -> None:
    """Keep asyncio from reporting a failed renewal that nobody waited for."""
    if not task.cancelled():
        task.exception()
