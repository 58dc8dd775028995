"""The chatbot for scripts and notebooks, without `await`."""

import asyncio
import threading
from collections.abc import (
    AsyncGenerator,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar, Unpack

from langchain_core.tools import BaseTool

from chatbot.domain import Assistant, Match, Session, SessionSummary, Thumb, Turn
from chatbot.events import Event
from chatbot.images.image import Image
from chatbot.ratings import RatedTurn
from chatbot.settings import Settings
from chatbot.tasks import end
from graphs.conversation import Answer, Chatbot, Choices, Options, open_chatbot
from graphs.reviews import Explanation

Result = TypeVar("Result")


class SyncChatbot:
    """A `Chatbot` whose event loop runs in a thread of its own.

    So it also works where an event loop is running already, as in a notebook.
    """

    def __init__(self, bot: Chatbot, loop: asyncio.AbstractEventLoop) -> None:
        self._bot = bot
        self._loop = loop
        self._streams: dict[int, tuple[AsyncGenerator[Event, None], asyncio.Lock]] = {}

    def stream(self, question: str, **choices: Unpack[Choices]) -> Generator[Event, None, None]:
        """See `Chatbot.stream`. Leaving the loop early stops the answer."""
        return self._each(self._bot.stream(question, **choices))

    def regenerate(
        self, session_id: str, turn_id: str | None = None, **options: Unpack[Options]
    ) -> Generator[Event, None, None]:
        """See `Chatbot.regenerate`."""
        return self._each(self._bot.regenerate(session_id, turn_id, **options))

    def edit(
        self, session_id: str, turn_id: str, question: str, **options: Unpack[Options]
    ) -> Generator[Event, None, None]:
        """See `Chatbot.edit`."""
        return self._each(self._bot.edit(session_id, turn_id, question, **options))

    def ask(self, question: str, **choices: Unpack[Choices]) -> Answer:
        """See `Chatbot.ask`."""
        return self._run(self._bot.ask(question, **choices))

    def turns(
        self, session_id: str, *, user_id: str | None = None, limit: int = 50
    ) -> Sequence[Turn]:
        """See `Chatbot.turns`."""
        return self._run(self._bot.turns(session_id, user_id=user_id, limit=limit))

    def running(self, session_id: str, *, user_id: str | None = None) -> Turn | None:
        """See `Chatbot.running`."""
        return self._run(self._bot.running(session_id, user_id=user_id))

    def sessions(
        self, *, user_id: str | None = None, limit: int = 50, before: str | None = None
    ) -> Sequence[SessionSummary]:
        """See `Chatbot.sessions`."""
        return self._run(self._bot.sessions(user_id=user_id, limit=limit, before=before))

    def clear(self, session_id: str, *, user_id: str | None = None) -> int:
        """See `Chatbot.clear`."""
        return self._run(self._bot.clear(session_id, user_id=user_id))

    def forget_user(self, user_id: str | None = None) -> int:
        """See `Chatbot.forget_user`."""
        return self._run(self._bot.forget_user(user_id))

    def search_sessions(
        self, text: str, *, user_id: str | None = None, limit: int = 20
    ) -> Sequence[Match]:
        """See `Chatbot.search_sessions`."""
        return self._run(self._bot.search_sessions(text, user_id=user_id, limit=limit))

    def rate(
        self,
        session_id: str,
        turn_id: str,
        thumb: Thumb | None,
        comment: str | None = None,
        *,
        user_id: str | None = None,
    ) -> Turn:
        """See `Chatbot.rate`."""
        return self._run(self._bot.rate(session_id, turn_id, thumb, comment, user_id=user_id))

    def feedback(
        self,
        thumb: Thumb | None = "down",
        *,
        days: float | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Sequence[RatedTurn]:
        """See `Chatbot.feedback`."""
        found = self._bot.feedback(thumb, days=days, limit=limit, before=before)
        return self._run(found)

    def why(
        self,
        turn_id: str | None = None,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> Explanation:
        """See `Chatbot.why`."""
        return self._run(self._bot.why(turn_id, session_id=session_id, user_id=user_id))

    def rename(self, session_id: str, title: str, *, user_id: str | None = None) -> None:
        """See `Chatbot.rename`."""
        self._run(self._bot.rename(session_id, title, user_id=user_id))

    def export(self, session_id: str, *, user_id: str | None = None) -> dict[str, Any]:
        """See `Chatbot.export`."""
        return self._run(self._bot.export(session_id, user_id=user_id))

    def import_(
        self, data: object, *, user_id: str | None = None, session_id: str | None = None
    ) -> Session:
        """See `Chatbot.import_`."""
        return self._run(self._bot.import_(data, user_id=user_id, session_id=session_id))

    def statistics(
        self, session_id: str | None = None, *, user_id: str | None = None
    ) -> Mapping[str, Any]:
        """See `Chatbot.statistics`."""
        return self._run(self._bot.statistics(session_id, user_id=user_id))

    def image(self, name: str, *, user_id: str | None = None) -> Image | None:
        """See `Chatbot.image`."""
        return self._run(self._bot.image(name, user_id=user_id))

    def assistants(self) -> Sequence[Assistant]:
        """See `Chatbot.assistants`."""
        return self._run(self._bot.assistants())

    def close(self) -> None:
        """Stop the streams that were left open, while there is still something to keep them."""
        while self._streams:
            _, (events, alone) = self._streams.popitem()
            self._run(_end(events, alone))

    def _each(self, events: AsyncGenerator[Event, None]) -> Generator[Event, None, None]:
        # After Ctrl-C the step that was cancelled still keeps the turn; closing waits for it.
        alone = asyncio.Lock()
        self._streams[id(events)] = (events, alone)
        try:
            while (event := self._run(_next(events, alone))) is not None:
                yield event
        finally:
            if self._streams.pop(id(events), None):
                self._run(_end(events, alone))

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result; Ctrl-C cancels the work and waits until it has ended."""
        tasks: list[asyncio.Task[Result]] = []

        async def held() -> Result:
            tasks.append(asyncio.create_task(work))
            return await tasks[0]

        try:
            return _wait(asyncio.run_coroutine_threadsafe(held(), self._loop))
        except KeyboardInterrupt:
            _wait(asyncio.run_coroutine_threadsafe(end(*tasks), self._loop))
            raise


@contextmanager
def open_chatbot_sync(
    settings: Settings | None = None, *, tools: Sequence[BaseTool] = ()
) -> Iterator[SyncChatbot]:
    """Open the chatbot for code that does not await; see `open_chatbot`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="chatbot", daemon=True)
    thread.start()
    opened = open_chatbot(settings, tools=tools)
    try:
        bot = _wait(asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop))
        synchronous = SyncChatbot(bot, loop)
        try:
            yield synchronous
        finally:
            synchronous.close()
            _wait(asyncio.run_coroutine_threadsafe(_close(opened), loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(opened: Any) -> None:  # noqa: ANN401 - contextlib's own, unnamed class
    await opened.__aexit__(None, None, None)
    await asyncio.get_running_loop().shutdown_default_executor()


async def _next(events: AsyncGenerator[Event, None], alone: asyncio.Lock) -> Event | None:
    async with alone:
        return await anext(events, None)


async def _end(events: AsyncGenerator[Event, None], alone: asyncio.Lock) -> None:
    async with alone:
        await events.aclose()


def _wait(future: "Future[Result]") -> Result:
    """Return the future's result; Ctrl-C cancels the work and lets it end."""
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise
