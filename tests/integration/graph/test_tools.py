import asyncio
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from langchain_core.tools import tool

from chatbot.errors import ModelError
from chatbot.tools.clock import current_time_tool
from chatbot.tools.toolbox import Toolbox
from graphs.answering import CALLS, ROUNDS
from tests.integration.graph.conftest import Bench, kinds
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))
WINDOW = Said(call=Call("weather", '{"city": "Paris"}'))


LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
CALL = Said(call=Call("weather", '{"city": "x"}'))
WRITTEN = '<tool_call>{"name": "weather", "arguments": {"city": "x"}}</tool_call>'


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    await asyncio.sleep(0)
    return f"{city}: sunny"


async def test_a_tools_result_reaches_the_model_and_the_record(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    call = Said(["Let me see."], call=Call("weather", '{"city": "Concord"}'))
    bench.script(CHAT, call, Said(["Sunny it is."]))
    events = [event async for event in bot.stream("Weather in Concord?", session_id="s")]
    assert kinds(events) == [
        *("stage", "metadata", "stage", "content", "stage", "content", "usage", "end")
    ]
    assert {"name": "tool", "detail": "weather"} in [event["data"] for event in events]
    assert events[-1]["data"]["full_answer"] == "Let me see.\n\nSunny it is."
    assert bench.model.offered == [["knowledge_base", "general_chat"], ["weather"], ["weather"]]
    assert bench.asked(2) == "Concord: sunny"
    [turn] = await bot.turns("s")
    assert turn.record["tools"] == [
        {
            "name": "weather",
            "arguments": {"city": "Concord"},
            "result": "Concord: sunny",
            "failed": False,
        }
    ]
    bench.script(CHAT, Said(["As I said: sunny."]))
    await bot.ask("And again?", session_id="s")
    roles = [message.type for message in bench.model.prompts[-1]]
    assert roles == ["system", "human", "ai", "tool", "ai", "human"]


async def test_bad_calls_are_told_to_the_model(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(
        CHAT,
        Said(call=Call("wether", "{}")),
        Said(call=Call("weather", '{"town": "x"}')),
        Said(call=Call("weather", "not json")),
        Said(["I give up."]),
    )
    answer = await bot.ask("Weather?")
    assert answer.text == "I give up."
    assert "no tool named 'wether'" in bench.asked(2)
    assert "do not fit" in bench.asked(3)
    assert "could not be read" in bench.asked(4)


async def test_after_the_last_round_the_model_has_to_answer(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(CHAT, *[CALL] * ROUNDS, Said(["Enough."]))
    assert (await bot.ask("Weather?")).text == "Enough."
    # Some endpoints refuse results of tools in a request that offers none.
    assert bench.model.offered == [["knowledge_base", "general_chat"], *[["weather"]] * 6]
    choices = [options.get("tool_choice") for options in bench.model.options]
    assert choices == [None] * 6 + ["none"]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(CALL, id="it calls one all the same"),
        pytest.param(Said([WRITTEN]), id="it writes a call all the same"),
        pytest.param(Said(error=ModelError("bad_request", "tool_choice?")), id="not known"),
        pytest.param(
            Said(error=ModelError("unsupported", "no tool_choice")), id="not supported"
        ),
    ],
)
async def test_an_endpoint_that_does_not_heed_that_no_tool_is_to_be_called(
    bench: Bench, last: Said
) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(CHAT, *[CALL] * ROUNDS, last, Said(["Enough."]))
    answer = await bot.ask("Weather?", session_id="s")
    assert answer.text == "Enough."
    assert bench.model.offered[-1] == []
    assert "tool_choice" not in bench.model.options[-1]
    [turn] = await bot.turns("s")
    assert len(turn.record["tools"]) == ROUNDS


async def test_a_model_that_does_nothing_but_call_gave_no_answer(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(CHAT, *[CALL] * (ROUNDS + 1), Said([WRITTEN]))
    with pytest.raises(ModelError, match="empty answer"):
        await bot.ask("Weather?")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("unsupported", id="not supported"),
        pytest.param("bad_request", id="a bad request"),
    ],
)
async def test_an_endpoint_that_takes_no_tools_answers_without(bench: Bench, kind: Any) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    refused = ModelError(kind, '"auto" tool choice requires --enable-auto-tool-choice')
    bench.script(CHAT, Said(error=refused), Said(["I cannot know."]))
    answer = await bot.ask("Weather?")
    assert answer.text == "I cannot know."
    assert bench.model.offered[-2:] == [["weather"], []]
    [degraded] = answer.metadata["degraded"]
    assert degraded["part"] == "tools"


async def test_of_too_many_calls_at_once_the_first_are_run(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(CHAT, Said([WRITTEN * 500]), Said(["Enough."]))
    assert (await bot.ask("Weather?", session_id="s")).text == "Enough."
    [turn] = await bot.turns("s")
    assert len(turn.record["tools"]) == CALLS


async def test_another_refusal_is_told_at_once(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(CHAT, Said(error=ModelError("bad_request", "temperature is too high")))
    with pytest.raises(ModelError, match="temperature"):
        await bot.ask("Weather?")
    assert bench.used_up()


async def test_a_tool_knows_the_users_zone(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[current_time_tool()]))
    bench.script(CHAT, Said(call=Call("current_time")), Said(["Late."]))
    await bot.ask("What time is it?", timezone="Pacific/Kiritimati")
    assert bench.asked(2).endswith("(UTC+1400, Pacific/Kiritimati)")


@pytest.mark.parametrize(
    ("zone", "place"),
    [
        pytest.param("Pacific/Kiritimati", ZoneInfo("Pacific/Kiritimati"), id="the user's"),
        pytest.param(None, None, id="this machine's"),
        pytest.param("Nowhere/Else", None, id="no such zone"),
    ],
)
@pytest.mark.parametrize(
    "route", [pytest.param(CHAT, id="chat"), pytest.param(LOOK_UP, id="from passages")]
)
async def test_the_model_knows_the_date_where_the_user_is(
    bench: Bench, route: Said, zone: str | None, place: ZoneInfo | None
) -> None:
    bench.script(route, Said(["Today."]))
    before = datetime.now(place).astimezone(place)
    await bench.bot.ask("benefits today", timezone=zone)
    after = datetime.now(place).astimezone(place)
    instructions = str(bench.model.prompts[-1][0].content)
    days = {f"Today is {now:%A, %Y-%m-%d} ({now.tzinfo})." for now in (before, after)}
    assert any(day in instructions for day in days)


async def test_a_call_that_the_length_limit_cut_is_not_run(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    call = Said(["Well,"], call=Call("weather", '{"city": "x"}'), finish="length")
    bench.script(CHAT, call)
    answer = await bot.ask("Weather?", session_id="s")
    assert (answer.text, answer.finish_reason) == ("Well,", "length")
    [turn] = await bot.turns("s")
    assert "tools" not in turn.record
