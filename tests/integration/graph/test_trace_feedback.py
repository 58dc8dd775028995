"""What readers think of answers, and where their traces are, in LangSmith."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatbot.domain import Thumb
from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from tests.servers.traces import PROJECT, TENANT, trace_sink
from tests.trajectories import tracing

SECRET = "sk-a-secret-of-ours"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Chatbot]:
    async with open_chatbot(Settings(chatbot_data_dir=folder)) as bot:
        yield bot


async def rated(bot: Chatbot, turn_id: str, *thumbs: Thumb | None) -> None:
    for thumb in thumbs:
        await bot.rate("s", turn_id, thumb, "不好 bad")
    await bot.ports.background.settle()


async def test_a_thumb_is_one_feedback_of_the_turns_run(tmp_path: Path) -> None:
    with trace_sink() as sink, tracing(sink.url):
        async with opened(tmp_path) as bot:
            turn_id = (await bot.ask("Hello", session_id="s")).metadata["turn_id"]
            await rated(bot, turn_id, "down")
            [(first, given)] = sink.ratings.items()
            assert given["run_id"] == turn_id
            assert (given["key"], given["score"]) == ("user_score", 0)
            assert given["session_id"] == PROJECT
            assert given["comment"] == "不好 bad"
            await rated(bot, turn_id, "up")
            assert {name: each["score"] for name, each in sink.ratings.items()} == {first: 1}
            await rated(bot, turn_id, None)
            assert sink.ratings == {}
            await rated(bot, turn_id, None, "up", "down")
            assert {name: each["score"] for name, each in sink.ratings.items()} == {first: 0}


async def test_a_turn_without_a_trace_has_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        turn_id = (await bot.ask("Hello", session_id="s")).metadata["turn_id"]
    with trace_sink() as sink, tracing(sink.url):
        async with opened(tmp_path) as bot:
            await rated(bot, turn_id, "down")
            found = await bot.why(turn_id)
        assert sink.told == []
        assert found.trace_url is None


async def test_a_turn_that_is_not_sampled_has_none(tmp_path: Path) -> None:
    with trace_sink() as sink, tracing(sink.url, TRACING_SAMPLING_RATE="0"):
        async with opened(tmp_path) as bot:
            turn_id = (await bot.ask("Hello", session_id="s")).metadata["turn_id"]
            await rated(bot, turn_id, "down", "up", None)
            found = await bot.why(turn_id)
        assert (sink.told, sink.raw, found.trace_url) == ([], b"", None)
        assert found.turn.record["trace_id"] is None  # there is none to look for


@pytest.mark.parametrize(
    ("hidden", "expected"), [("false", "mine is [secret]"), ("true", None)]
)
async def test_comments_hold_no_secret_and_may_be_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str, expected: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with trace_sink() as sink, tracing(sink.url, HIDE_INPUTS=hidden):
        async with open_chatbot(Settings(chatbot_data_dir=tmp_path, llm_model="m")) as bot:
            [event, *_] = [e async for e in bot.stream("Hi", session_id="s") if e["data"]]
            [turn] = await bot.turns("s")
            await bot.rate("s", turn.id, "down", f"mine is {SECRET}")
            await bot.ports.background.settle()
        [given] = sink.ratings.values()
        assert given.get("comment") == expected
        assert event


@pytest.mark.parametrize("fault", [401, 429, 500, "hang"])
async def test_a_langsmith_that_fails_takes_nothing_from_the_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: int | str
) -> None:
    with trace_sink() as sink, tracing(sink.url):
        async with opened(tmp_path) as bot:
            turn_id = (await bot.ask("Hello", session_id="s")).metadata["turn_id"]
            sink.fault = fault
            async with asyncio.timeout(8):  # it is not waited for
                turn = await bot.rate("s", turn_id, "down")
            assert turn.record["feedback"]["thumb"] == "down"
            async with asyncio.timeout(60):
                await bot.ports.background.settle()
                found = await bot.why(turn_id)
            assert found.trace_url is None
            [kept] = await bot.feedback()
            assert kept.turn.id == turn_id
            sink.fault = None
    assert "feedback did not reach LangSmith" in caplog.text


async def test_why_says_where_the_trace_is(tmp_path: Path) -> None:
    with trace_sink() as sink, tracing(sink.url):
        async with opened(tmp_path) as bot:
            turn_id = (await bot.ask("Hello", session_id="s")).metadata["turn_id"]
            found = await bot.why(turn_id)
    assert found.session.session_id == "s"
    assert found.trace_url is not None
    assert found.trace_url.endswith(f"/o/{TENANT}/projects/p/{PROJECT}/r/{turn_id}?poll=true")
