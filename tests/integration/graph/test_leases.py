import asyncio
from collections.abc import AsyncIterator

import pytest

from chatbot.domain import Session
from chatbot.errors import BusyError
from chatbot.leases.local import LocalLeases
from chatbot.ports import Limits
from graphs import Chatbot
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))


@pytest.fixture
async def leases() -> AsyncIterator[LocalLeases]:
    opened = LocalLeases(":memory:")
    yield opened
    await opened.close()


def bot_with(bench: Bench, leases: LocalLeases, *, wait_seconds: float = 5) -> Chatbot:
    limits = Limits(turn_seconds=10, wait_seconds=wait_seconds)
    return bench.bot_with(leases=leases, limits=limits)


async def answering(bench: Bench, prompts: int) -> None:
    async with asyncio.timeout(5):
        while len(bench.model.prompts) < prompts:  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.01)


async def test_two_questions_at_once_are_answered_in_order(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on), CHAT, Said(["second"]))
    first = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, 2)
    second = asyncio.create_task(bot.ask("two", session_id="s"))
    await asyncio.sleep(0.2)
    assert len(bench.model.prompts) == 2
    go_on.set()
    assert [(await first).text, (await second).text] == ["first", "second"]
    assert [t.question for t in await bot.turns("s")] == ["one", "two"]
    assert [m.content for m in bench.model.prompts[-1][1:3]] == ["one", "first"]


async def test_the_second_is_told_that_the_session_is_busy(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases, wait_seconds=0.2)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on))
    first = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, 2)
    events = [event async for event in bot.stream("two", session_id="s")]
    assert [event["type"] for event in events] == ["stage", "metadata", "error"]
    assert events[-1]["data"]["code"] == "busy"
    assert events[-1]["data"]["retryable"]
    with pytest.raises(BusyError):
        await bot.ask("two", session_id="s")
    bench.script(CHAT, Said(["elsewhere"]))
    assert (await bot.ask("three", session_id="other")).text == "elsewhere"
    go_on.set()
    await first
    assert [t.question for t in await bot.turns("s")] == ["one"]


async def test_a_stopped_or_failed_turn_frees_the_session(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases, wait_seconds=0.1)
    bench.script(Said(pause=asyncio.Event()))
    stopped = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, 1)
    stopped.cancel()
    await asyncio.gather(stopped, return_exceptions=True)
    bench.script(CHAT, Said(error=ZeroDivisionError("x")), CHAT, Said(["fine"]))
    await asyncio.gather(bot.ask("two", session_id="s"), return_exceptions=True)
    assert (await bot.ask("three", session_id="s")).text == "fine"
    assert [t.status for t in await bot.turns("s")] == ["stopped", "failed", "complete"]
    assert await leases.running(Session(session_id="s")) is None


async def test_the_running_answer_can_be_seen_from_elsewhere(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["half of "], pause=go_on))
    running = asyncio.create_task(bot.ask("one", session_id="s"))
    async with asyncio.timeout(5):
        shown = None
        while not (shown and shown.answer):
            await asyncio.sleep(0.05)
            shown = await leases.running(Session(session_id="s"))
    assert shown.answer.startswith("half of")
    go_on.set()
    await running
