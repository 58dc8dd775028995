"""What is done early changes when an answer comes, and not a byte of it."""

import asyncio
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said
from tests.servers.model import Brain, ModelServer, call

TRICKS: list[dict[str, Any]] = [
    {"prefetch": prefetch, "head_start": begins, "route_early": early}
    for prefetch, begins, early in product((0, 3), (False, True), (False, True))
]
# "other" has the router's tokens: of a call that was read early they are estimated.
OWN = {"session_id", "turn_id", "first_token_ms", "total_ms", "timings", "other"}
NAMES = {
    "the likeliest": "员工手册 Employee Handbook",
    "another": "瓦尔登湖 Walden",
    "nobody": "nobody of that name",
}
FIRST, FOLLOW_UP, CHAT = (
    "How many days of leave? 年假几天？",
    "And of sick leave?",
    "Thank you!",
)


def brain(name: str, delay: float) -> Brain:
    """Route as a model does that means this assistant, and answer with what it was shown."""
    arguments = {"assistants": [name], "question": "How many days of sick leave are there?"}
    first = json.dumps({"assistants": [name]}, ensure_ascii=False)
    return Brain(
        routes={
            FIRST: call("knowledge_base", first, delay=delay),
            FOLLOW_UP: call("knowledge_base", arguments, delay=delay),
            CHAT: call("general_chat", delay=delay),
        },
        answer="It is 10 days [1], 年假 [2], and 31 March [3].",
        delay=delay,
    )


def without_own(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: without_own(data[name]) for name in data if name not in OWN}
    return data


async def said(bot: Chatbot, session_id: str) -> list[str]:
    """Return all that a reader gets of three turns, as JSON."""
    told = []
    for question in (FIRST, FOLLOW_UP, CHAT):
        pieces = {"content": "", "reasoning": ""}
        async for event in bot.stream(question, session_id=session_id):
            kind, data = event["type"], event["data"]
            if kind in pieces:
                pieces[kind] += str(data)
            else:
                told.append(json.dumps([kind, without_own(data)], sort_keys=True))
        told.append(json.dumps(pieces))
    return [*told, *(turn.answer for turn in await bot.turns(session_id))]


@pytest.mark.parametrize("delay", [0, 0.02], ids=["fast", "slow"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
async def test_an_answer_is_the_same_with_every_trick_on_and_off(
    tmp_path: Path, name: str, delay: float
) -> None:
    with ModelServer(brain(name, delay)) as server:
        settings = Settings(
            chatbot_data_dir=tmp_path,
            llm_model="scripted",
            openai_base_url=server.base_url,
            openai_api_key=SecretStr("k"),
        )
        async with open_chatbot(settings) as opened:
            told = []
            for number, choices in enumerate(TRICKS):
                limits = replace(opened.ports.limits, **choices)
                bot = Chatbot(replace(opened.ports, limits=limits))
                told.append(await said(bot, f"s{number}"))
            guesses = opened.ports.statistics.summary()["guesses"]
    assert any('"citations"' in each for each in told[0])
    begun = {guess.partition(" ")[0] for guess in guesses}
    assert begun == {"prefetch", "head_start"} if delay else "prefetch" in begun
    for choices, each in zip(TRICKS, told, strict=True):
        assert each == told[0], choices


@pytest.mark.parametrize("name", ["prefetch", "head_start", "route_early"])
async def test_each_can_be_switched_off_by_a_setting(tmp_path: Path, name: str) -> None:
    off: dict[str, Any] = {name: 0}
    async with open_chatbot(Settings(chatbot_data_dir=tmp_path, **off)) as bot:
        assert not getattr(bot.ports.limits, name)


@pytest.mark.parametrize("early", [True, False])
async def test_a_call_is_read_to_its_end_where_it_is_wished(bench: Bench, early: bool) -> None:
    go_on = asyncio.Event()
    bench.script(Said(call=Call("general_chat", pause=go_on)), Said(["Hello."]))
    limits = replace(bench.limits, route_early=early, router_seconds=30 if early else 0.2)
    answer = await bench.bot_with(limits=limits).ask("Hello")
    assert bool(answer.metadata["degraded"]) != early
