"""Takes a turn's events from the graph to whoever runs it in this process."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig

from chatbot.events import Event
from graphs.turn import LiveTurn

LISTENER = "listener"


class Listener:
    """Gets the turn and its events directly, where it is under `LISTENER` in the run's config.

    In LangGraph's own stream a piece of an answer costs more than on the whole way before it.
    """

    def __init__(self) -> None:
        self.turn: LiveTurn | None = None
        self._events: deque[Mapping[str, Any]] = deque()
        self._waiting: asyncio.Future[None] | None = None

    def emit(self, event: Mapping[str, Any]) -> None:
        """Take the next event. Called in the event loop."""
        self._events.append(event)
        self._wake()

    async def events(self, run: asyncio.Task[Any]) -> AsyncGenerator[Event, None]:
        """Yield the events until the run ends, then raise what it failed with."""
        run.add_done_callback(lambda _: self._wake())
        while True:
            while self._events:
                yield cast("Event", self._events.popleft())
            if run.done():
                run.result()
                return
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def listener_of(config: RunnableConfig) -> Listener | None:
    """Return who listens to this run directly, if anybody does."""
    found = config.get("configurable", {}).get(LISTENER)
    return found if isinstance(found, Listener) else None
