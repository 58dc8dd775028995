"""The answer is begun while the router still says whom to ask."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from chatbot.errors import ModelError
from chatbot.events import Event
from chatbot.limits import Limits
from graphs import Chatbot
from tests.integration.graph.conftest import Bench
from tests.integration.graph.test_images import ONE
from tests.integration.graph.test_responding import leave
from tests.ports import Call, Said

EARLY = Limits(turn_seconds=60, router_seconds=30, knowledge_seconds=30, prefetch=3)
LATE = replace(EARLY, head_start=False)
QUESTION = "benefits 瓦尔登湖"  # the handbook's passage has the better score
OWN = {"turn_id", "session_id", "first_token_ms", "total_ms", "timings", "metadata"}
HANDBOOK, WALDEN = '{"assistants": ["handbook"]}', '{"assistants": ["瓦尔登湖"]}'


def begun() -> Said:
    """Return a reply that never ends."""
    return Said(["This nobody ", "sees [1]."], pause=asyncio.Event())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.01)


def is_cancelled(bench: Bench, number: int) -> bool:
    return any(prompt is bench.model.prompts[number] for prompt in bench.model.cancelled)


async def told(bot: Chatbot, question: str = QUESTION, **choices: Any) -> list[Any]:
    """Return what the events of a first turn say, without ids and times."""

    def said(event: Event) -> Any:
        if not isinstance(event["data"], dict):
            return event["data"]
        return {name: value for name, value in event["data"].items() if name not in OWN}

    session = str(id(bot))
    events = bot.stream(question, session_id=session, **choices)
    return [said(event) async for event in events]


async def early(bench: Bench, arguments: str, *begun: Said, finish: str = "stop") -> list[Any]:
    """Return what is told where the arguments come once the answer was begun, if it was."""
    come = asyncio.Event()
    call = Call("knowledge_base", arguments, pause=come)
    bench.script(Said(call=call, finish=finish), *begun)
    before = len(bench.model.prompts)
    telling = asyncio.create_task(told(bench.bot_with(limits=EARLY)))
    await until(lambda: len(bench.model.prompts) == before + 2)
    come.set()
    return await telling


async def late(bench: Bench, arguments: str, *said: Said, finish: str = "stop") -> list[Any]:
    bench.script(Said(call=Call("knowledge_base", arguments), finish=finish), *said)
    return await told(bench.bot_with(limits=LATE))


@pytest.mark.parametrize(
    ("arguments", "finish", "is_right"),
    [
        pytest.param(HANDBOOK, "stop", True, id="the guess is right"),
        pytest.param(WALDEN, "stop", False, id="another assistant"),
        pytest.param('{"assistants": []}', "stop", False, id="all assistants"),
        pytest.param('{"assistants": ["han', "stop", False, id="broken arguments"),
        pytest.param('{"assistants": ["han', "length", False, id="the call is cut off"),
    ],
)
async def test_the_answer_is_the_same_with_and_without(
    bench: Bench, arguments: str, finish: str, is_right: bool
) -> None:
    answer = Said(["15 days ", "[1], a pond [2]."], reasoning="hm")
    guessed = [] if is_right else [begun()]
    with_it = await early(bench, arguments, *guessed, answer, finish=finish)
    assert with_it == await late(bench, arguments, answer, finish=finish)
    assert "nobody" not in str(with_it)
    assert bench.used_up()
    assert is_cancelled(bench, 1) != is_right


@pytest.mark.parametrize(("arguments", "use"), [(HANDBOOK, "used"), (WALDEN, "unused")])
async def test_the_record_tells_whether_it_was_of_use(
    bench: Bench, arguments: str, use: str
) -> None:
    await early(bench, arguments, *([begun()] if use == "unused" else []), Said(["Yes [1]."]))
    bot = bench.bot
    [session] = await bot.sessions()
    [turn] = await bot.turns(session.session_id)
    assert turn.record["head_start"] == use


@pytest.mark.parametrize(
    "arguments", ['{"assistants": []}', '{"assistants": ["handbook", "瓦尔登湖"]}']
)
async def test_what_the_answer_rests_on_was_of_use(bench: Bench, arguments: str) -> None:
    come = asyncio.Event()
    bench.script(Said(call=Call("knowledge_base", arguments, pause=come)), Said(["Yes [1]."]))
    bot = bench.bot_with(limits=EARLY)
    telling = asyncio.create_task(bot.ask("benefits", session_id="s"))
    await until(lambda: len(bench.model.prompts) == 2)
    come.set()
    await telling
    [turn] = await bot.turns("s")
    assert (turn.record["head_start"], turn.record["prefetch"]) == ("used", "used")


async def test_its_failure_is_that_of_the_answer(bench: Bench) -> None:
    broken = Said(["15 "], error=ModelError("interrupted", "The answer broke off."))

    async def closed(telling: Any) -> Any:
        with suppress(ModelError):
            return (await telling)[-1]
        raise AssertionError

    assert await closed(early(bench, HANDBOOK, broken)) == await closed(
        late(bench, HANDBOOK, broken)
    )


@pytest.mark.parametrize("arguments", [HANDBOOK, WALDEN])
async def test_one_that_failed_before_its_first_word_changes_nothing(
    bench: Bench, arguments: str
) -> None:
    broken = Said(error=ModelError("rate_limit", "One request at a time, please."))
    answer = Said(["15 days [1]."], reasoning="hm")
    assert await early(bench, arguments, broken, answer) == await late(bench, arguments, answer)
    assert bench.used_up()


async def test_a_stopped_turn_cancels_it(bench: Bench) -> None:
    call = Call("knowledge_base", HANDBOOK, pause=asyncio.Event())
    bench.script(Said(call=call), begun())
    telling = asyncio.create_task(told(bench.bot_with(limits=EARLY)))
    await until(lambda: len(bench.model.prompts) == 2)
    telling.cancel()
    await asyncio.gather(telling, return_exceptions=True)
    await until(lambda: is_cancelled(bench, 1))


@pytest.mark.parametrize(
    ("ports", "choices", "asked"),
    [
        pytest.param({"respondent": leave()}, {}, 1, id="the assistant answers by itself"),
        pytest.param({}, {"response_schema": {"type": "object"}}, 1, id="a schema"),
        pytest.param({"sees_images": True}, {"images": [ONE.data]}, 2, id="an image"),
    ],
)
async def test_what_is_answered_otherwise_is_not_begun(
    bench: Bench, ports: dict[str, Any], choices: dict[str, Any], asked: int
) -> None:
    come = asyncio.Event()
    bench.script(Said(call=Call("knowledge_base", HANDBOOK, pause=come)), Said(["A dot [1]."]))
    bot = bench.bot_with(limits=EARLY, **ports)
    telling = asyncio.create_task(told(bot, **choices))
    await until(lambda: len(bench.knowledge.queries) == 2)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(bench.model.prompts) == 1
    come.set()
    await asyncio.gather(telling, return_exceptions=True)
    assert len(bench.model.prompts) == asked


async def test_nothing_found_begins_nothing(bench: Bench) -> None:
    come = asyncio.Event()
    bench.script(Said(call=Call("knowledge_base", HANDBOOK, pause=come)), Said(["No."]))
    telling = asyncio.create_task(told(bench.bot_with(limits=EARLY), "anything else"))
    await until(lambda: len(bench.knowledge.queries) == 2)
    come.set()
    assert (await telling)[-1]["full_answer"] == "No."
    assert len(bench.model.prompts) == 2
    assert not is_cancelled(bench, 1)
