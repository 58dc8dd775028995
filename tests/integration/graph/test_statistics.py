import asyncio
import uuid
from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from chatbot.errors import ChatbotError, KnowledgeBaseError, ModelError
from graphs import Chatbot, Context
from tests.integration.graph.conftest import Bench
from tests.integration.graph.test_head_start import HANDBOOK, WALDEN, early
from tests.ports import Call, Said
from tests.trajectories import Traces

LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
CHAT = Said(call=Call("general_chat"))
COUNTS = ("turns", "statuses", "intents", "replacements", "errors", "degraded")


async def counted(bot: Chatbot, session_id: str | None = None) -> dict[str, Any]:
    statistics = await bot.statistics(session_id)
    return {name: statistics[name] for name in COUNTS}


async def test_every_turn_is_counted_as_what_became_of_it(bench: Bench) -> None:
    bot = bench.bot
    bench.script(LOOK_UP, Said(["15 days [1]"]))
    await bot.ask("benefits", session_id="s")
    bench.script(CHAT, Said(["again"]))
    [event async for event in bot.regenerate("s")]
    bench.script(CHAT, Said(error=ZeroDivisionError("no answer")))
    with pytest.raises(ChatbotError):
        await bot.ask("fails", session_id="s")
    bench.script(CHAT, Said(["half", "more"], pause=asyncio.Event()))
    async with aclosing(bot.stream("left", session_id="s")) as events:
        async for event in events:
            if event["type"] == "content":
                break
    bench.knowledge.down = KnowledgeBaseError("unavailable", "It is away.")
    bench.model.script.clear()
    bench.script(LOOK_UP)
    await bot.ask("benefits", session_id="t")
    with pytest.raises(ChatbotError):
        await bot.ask(" ", session_id="s")

    assert await counted(bot, "s") == {
        "turns": 4,
        "statuses": {"complete": 2, "failed": 1, "stopped": 1},
        "intents": {"knowledge_base": 1, "general_chat": 3},
        "replacements": 1,
        "errors": {"internal": 1},
        "degraded": {},
    }
    assert await counted(bot) == {
        "turns": 5,
        "statuses": {"complete": 3, "failed": 1, "stopped": 1},
        "intents": {"knowledge_base": 2, "general_chat": 3},
        "replacements": 1,
        "errors": {"internal": 1, "invalid_input": 1},
        "degraded": {"knowledge": 1},
    }
    everything = await bot.statistics()
    for times in (everything["first_token_ms"], everything["total_ms"]):
        assert 0 < times["p50"] <= times["p95"]
    lines = bot.metrics().decode().splitlines()
    assert "chatbot_turn_seconds_count 5.0" in lines
    assert "chatbot_first_token_seconds_count 4.0" in lines


async def test_a_run_that_is_executed_again_is_counted_once(bench: Bench) -> None:
    bot = bench.bot
    graph: Any = bot.graph
    graph.checkpointer = InMemorySaver()
    run: Any = {"configurable": {"thread_id": "t"}, "run_id": uuid.uuid4()}
    bench.script(CHAT, Said(["once"]))
    for _ in range(2):
        asked: Any = {"messages": [HumanMessage("hi", id="1")]}
        result: Any = await graph.ainvoke(asked, run, context=Context())
        assert result["messages"][-1].content == "once"
    assert (await bot.statistics())["turns"] == 1
    assert (await bot.statistics("t"))["turns"] == 1


@pytest.mark.parametrize(("arguments", "use"), [(HANDBOOK, "failed"), (WALDEN, "unused")])
async def test_an_answer_that_was_begun_early_and_failed_was_of_no_use(
    bench: Bench, traces: Traces, arguments: str, use: str
) -> None:
    broken = Said(error=ModelError("rate_limit", "One request at a time, please."))
    await early(bench, arguments, broken, Said(["15 days [1]."]))
    [session] = await bench.bot.sessions()
    [turn] = await bench.bot.turns(session.session_id)
    assert turn.record["head_start"] == use
    traces.of(turn.id).has(head_start=use)
    statistics = await bench.bot.statistics(session.session_id)
    assert statistics["guesses"] == {"prefetch used": 1, f"head_start {use}": 1}
