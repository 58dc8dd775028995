import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chatbot.domain import Assistant, Findings
from chatbot.errors import KnowledgeBaseError
from chatbot.limits import Limits
from tests.integration.graph.conftest import BENEFITS, POND, Bench
from tests.ports import Call, InMemoryKnowledgeBase, Said

HANDBOOK_CALL = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
EVERYWHERE = Said(call=Call("knowledge_base", '{"assistants": []}'))
CHAT = Said(call=Call("general_chat"))
PREFETCHING = Limits(turn_seconds=60, router_seconds=30, knowledge_seconds=30, prefetch=3)
PLAIN = replace(PREFETCHING, prefetch=0)


@dataclass
class SlowKnowledgeBase(InMemoryKnowledgeBase):
    """Tells which searches were cancelled before they were done."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: list[str] = field(default_factory=list)

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.append(assistants[0].name)
            raise
        return await super().search(query, assistants=assistants, limit=limit)


async def told(bench: Bench, limits: Limits, *script: Said) -> list[Any]:
    """Return the events of a first turn, without ids and times."""
    bench.knowledge.queries.clear()
    bench.script(*script)
    own = {"turn_id", "session_id", "first_token_ms", "total_ms", "timings", "metadata"}
    events = bench.bot_with(limits=limits).stream(
        "benefits 瓦尔登湖", session_id=f"s{id(limits)}"
    )
    return [
        {k: v for k, v in event["data"].items() if k not in own}
        if isinstance(event["data"], dict)
        else event["data"]
        async for event in events
    ]


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(HANDBOOK_CALL, id="one assistant, which was asked already"),
        pytest.param(EVERYWHERE, id="all assistants"),
        pytest.param(CHAT, id="small talk"),
        pytest.param(Said(["no call"]), id="the router fails"),
    ],
)
async def test_the_answer_is_the_same_with_and_without(bench: Bench, route: Said) -> None:
    answer = Said(["15 days [1], a pond [2]."])
    with_it = await told(bench, PREFETCHING, route, answer)
    assert with_it == await told(bench, PLAIN, route, answer)


async def test_what_was_found_already_is_not_searched_again(bench: Bench) -> None:
    bench.script(HANDBOOK_CALL, Said(["15 days [1]"]))
    bot = bench.bot_with(limits=PREFETCHING)
    await bot.ask("benefits", session_id="s")
    asked = [names for _, names in bench.knowledge.queries]
    assert sorted(asked) == [("handbook",), ("瓦尔登湖",)]
    [turn] = await bot.turns("s")
    assert turn.record["prefetch"] == "used"


async def test_what_is_not_wanted_is_cancelled(bench: Bench) -> None:
    knowledge = SlowKnowledgeBase(passages={"handbook": [BENEFITS], "瓦尔登湖": [POND]})
    bot = bench.bot_with(limits=PREFETCHING, knowledge=knowledge)
    bench.script(Said(["hm"], call=CHAT.call), Said(["hi"]))
    await bot.ask("benefits", session_id="s")
    assert sorted(knowledge.cancelled) == ["handbook", "瓦尔登湖"]
    [turn] = await bot.turns("s")
    assert turn.record["prefetch"] == "unused"


async def test_a_stopped_turn_cancels_it(bench: Bench) -> None:
    knowledge = SlowKnowledgeBase()
    bot = bench.bot_with(limits=PREFETCHING, knowledge=knowledge)
    bench.script(Said(pause=asyncio.Event()))
    asking = asyncio.create_task(bot.ask("benefits", session_id="s"))
    while not bench.model.prompts:  # noqa: ASYNC110 - the model tells nobody
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(0)
    assert len(knowledge.cancelled) == 2


async def test_a_follow_up_is_not_searched_before_it_stands_alone(bench: Bench) -> None:
    bot = bench.bot_with(limits=PREFETCHING)
    bench.script(CHAT, Said(["hi"]))
    await bot.ask("hi", session_id="s")
    bench.knowledge.queries.clear()
    bench.script(CHAT, Said(["hi"]))
    await bot.ask("benefits", session_id="s")
    assert bench.knowledge.queries == []


async def test_its_failure_is_that_of_the_search(bench: Bench) -> None:
    bench.knowledge.failing["handbook"] = KnowledgeBaseError("unavailable", "down")
    bench.knowledge.failing["瓦尔登湖"] = KnowledgeBaseError("unavailable", "down")
    bench.script(HANDBOOK_CALL)
    answer = await bench.bot_with(limits=PREFETCHING).ask("benefits")
    assert "cannot be reached" in answer.text
