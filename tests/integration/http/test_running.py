"""Turns in tasks of their own, and the life of the app."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from chatbot.domain import Session
from chatbot.events import Event
from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.http import create_app
from serving.http.running import RunningTurns
from tests.integration.http.ports import (
    InMemoryChatHistory,
    InMemoryKnowledgeBase,
    scripted,
)
from tests.integration.http.service import HANDBOOK, quotes

SESSION = Session(session_id="s")


async def test_comment_is_sent_while_nothing_happens() -> None:
    go_on = asyncio.Event()

    async def events() -> AsyncGenerator[Event, None]:
        await go_on.wait()
        yield {"type": "content", "data": "年假"}

    async with RunningTurns() as running:
        frames = running.start(SESSION, events()).frames(heartbeat_seconds=0.01)
        first = await anext(frames)
        go_on.set()
        rest = [frame async for frame in frames]

    assert first.startswith(b":")
    assert first.endswith(b"\n\n")
    assert 'data: {"type":"content","data":"年假"}\n\n'.encode() in b"".join(rest)


async def test_half_of_a_character_does_not_break_the_stream() -> None:
    async def events() -> AsyncGenerator[Event, None]:
        yield {"type": "content", "data": "\ud83d"}
        yield {"type": "content", "data": "line\r\nbreak\u2028"}

    async with RunningTurns() as running:
        frames = running.start(SESSION, events()).frames(heartbeat_seconds=1)
        sent = b"".join([frame async for frame in frames]).decode()

    assert sent.count("\n\n") == 3  # and the end of what did not end by itself
    assert "\r" not in sent


async def test_what_is_stopped_before_it_began_is_closed() -> None:
    async def events() -> AsyncGenerator[Event, None]:
        yield {"type": "content", "data": "never"}

    async with RunningTurns() as running:
        turn = running.start(SESSION, events())
        turn.stop()
        async with asyncio.timeout(5):
            sent = b"".join([frame async for frame in turn.frames(heartbeat_seconds=60)])

    assert b'"finish_reason":"stopped"' in sent
    assert b"never" not in sent


async def test_close_stops_what_runs_and_waits_until_it_is_kept() -> None:
    kept = []

    async def events() -> AsyncGenerator[Event, None]:
        try:
            yield {"type": "content", "data": "a"}
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            kept.append("a")

    async with RunningTurns() as running:
        turn = running.start(SESSION, events())
        await anext(turn.frames(heartbeat_seconds=1))

    assert kept == ["a"]
    assert turn.task.done()


async def test_settled_waits_for_stopped_turns_of_the_session_alone() -> None:
    own_kept, other_kept = asyncio.Event(), asyncio.Event()

    async def events(kept: asyncio.Event) -> AsyncGenerator[Event, None]:
        try:
            await asyncio.sleep(60)
            yield {"type": "content", "data": "a"}
        finally:
            await kept.wait()

    async with RunningTurns() as running:
        own = running.start(SESSION, events(own_kept))
        other = running.start(Session(session_id="other"), events(other_kept))
        await asyncio.sleep(0)
        own.stop()
        other.stop()
        settled = asyncio.create_task(running.settled(SESSION.user_id, SESSION.session_id))
        await asyncio.sleep(0.01)
        assert not settled.done()
        own_kept.set()
        await settled

        assert own.task.done()
        assert not other.task.done()
        settled = asyncio.create_task(running.settled(SESSION.user_id))
        await asyncio.sleep(0.01)
        assert not settled.done()
        other_kept.set()
        await settled
        assert other.task.done()


async def test_chatbot_is_open_as_long_as_the_app_runs() -> None:
    seen: list[object] = []
    ports = Ports(
        history=InMemoryChatHistory(),
        knowledge=InMemoryKnowledgeBase([HANDBOOK]),
        model=scripted(quotes),
    )

    @asynccontextmanager
    async def open_bot(settings: Settings | None) -> AsyncIterator[Chatbot]:
        seen.append(settings)
        yield Chatbot(ports)
        seen.append("closed")

    settings = Settings()
    app = create_app(settings, open_bot=open_bot)
    assert seen == []
    async with app.router.lifespan_context(app):
        assert seen == [settings]
        assert isinstance(app.state.bot, Chatbot)
    assert seen == [settings, "closed"]
