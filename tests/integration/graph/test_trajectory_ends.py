"""The traces of turns that end otherwise than with an answer."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from chatbot.errors import InputError, ModelError
from chatbot.leases.local import LocalLeases
from graphs.state import ChatInput, Context
from tests.integration.graph.conftest import Bench
from tests.integration.graph.test_trajectories import CHAT, ROUTED, events_of
from tests.ports import Said
from tests.trajectories import Traces

pytestmark = pytest.mark.langsmith


async def until_content(events: AsyncGenerator[Any, None]) -> list[Any]:
    """Leave a turn at its first word."""
    seen = []
    async with aclosing(events):
        async for event in events:
            seen.append(event)
            if event["type"] == "content":
                break
    return seen


async def test_the_answer_fails(traces: Traces, bench: Bench) -> None:
    bench.script(CHAT, Said(["Half a"], error=ModelError("server", "It broke.")))
    events = await events_of(bench.bot.stream("Hello"))
    assert events[-1]["type"] == "error"
    trace = traces.of(events)
    trace.goes(*ROUTED, "answer (failed)", "answer > answer (failed)")
    trace.has(status="failed", error="model_server")
    assert trace.run.data["error"]


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        pytest.param(" ", {}, id="nothing asked"),
        pytest.param("Hello", {"language": 7}, id="a choice that is none"),
        pytest.param("Hello", {"replaces": "none"}, id="nothing to replace"),
    ],
)
async def test_a_question_is_refused(
    traces: Traces, bench: Bench, question: str, choices: dict[str, Any]
) -> None:
    run_id = str(uuid.uuid4())
    with pytest.raises(InputError):
        await bench.bot.graph.ainvoke(
            ChatInput(messages=[HumanMessage(question)]),
            {"run_id": uuid.UUID(run_id)},
            context=Context(**choices),
        )
    trace = traces.of(run_id)
    trace.goes("load_history (failed)")
    trace.has(status="refused", error="invalid_input")


async def test_a_turn_takes_too_long(traces: Traces, bench: Bench) -> None:
    limits = replace(bench.limits, turn_seconds=1)
    bench.script(CHAT, Said(["Half a"], pause=asyncio.Event()))
    events = await events_of(bench.bot_with(limits=limits).stream("Hello"))
    trace = traces.of(events)
    trace.goes(*ROUTED, "answer (failed)", "answer > answer (cancelled)")
    trace.has(status="failed", error="deadline")


async def test_who_asked_goes_away(traces: Traces, bench: Bench) -> None:
    bench.script(CHAT, Said(["Half a"], pause=asyncio.Event()))
    trace = traces.of(await until_content(bench.bot.stream("Hello")))
    trace.goes(*ROUTED, "answer (cancelled)", "answer > answer (cancelled)")
    trace.has(status="stopped", ended="cancelled", error=None)
    assert not trace.run.data.get("error")


async def test_the_answer_is_stopped_from_elsewhere(traces: Traces, bench: Bench) -> None:
    leases = LocalLeases(":memory:")
    bot = bench.bot_with(leases=leases)
    bench.script(CHAT, Said(["Half a"], pause=asyncio.Event()))
    events = []
    async for event in bot.stream("Hello", session_id="s"):
        events.append(event)
        if event["type"] == "content":
            assert await bot.stop("s")
    await leases.close()
    trace = traces.of(events)
    trace.goes(*ROUTED, "answer (stopped)", "answer > answer (cancelled)")
    trace.has(status="stopped", ended="stopped", error=None)
    assert not trace.run.data.get("error")


async def test_the_session_is_busy(traces: Traces, bench: Bench) -> None:
    leases = LocalLeases(":memory:")
    bot = bench.bot_with(leases=leases, limits=replace(bench.limits, wait_seconds=0.1))
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on))
    async with aclosing(bot.stream("one", session_id="s")) as first:
        async for event in first:
            if event["type"] == "content":
                break
        second = await events_of(bot.stream("two", session_id="s"))
        go_on.set()
    await leases.close()
    trace = traces.of(second)
    trace.goes("load_history (failed)")
    assert "BusyError" in str(trace.run.data["error"])


async def test_a_turn_is_asked_for_again(traces: Traces, bench: Bench) -> None:
    bench.script(CHAT, Said(["The answer."]))
    turn_id = str(uuid.uuid4())
    for _ in range(2):
        events = await events_of(bench.bot.stream("Hello", session_id="s", turn_id=turn_id))
        assert events[-1]["data"]["full_answer"] == "The answer."
    # Both runs have the turn's id.
    traces.of(turn_id).goes(*ROUTED, "answer", "answer > answer", "save_turn", "load_history")


@pytest.mark.parametrize(
    "choices",
    [
        pytest.param({"session_id": "a b"}, id="session"),
        pytest.param({"user_id": {"$ne": ""}}, id="user"),
    ],
)
async def test_a_turn_that_is_refused(
    traces: Traces, bench: Bench, choices: Mapping[str, Any]
) -> None:
    turn_id = "6e3e3a0c-0a35-4a5e-9a39-0f0f36a1c0de"[:-4] + f"{len(str(choices)):04x}"
    events = await events_of(bench.bot.stream("Hello", turn_id=turn_id, **choices))
    assert events[-1]["data"]["code"] == "invalid_input"
    trace = traces.of(turn_id)
    trace.goes("load_history (failed)")
    assert "InputError" in str(trace.run.data["error"])
