import asyncio

from langchain_core.tools import tool

from chatbot.tools.toolbox import Toolbox
from graphs.answering import ROUNDS
from tests.integration.graph.conftest import Bench, kinds
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))


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
    again = [Said(call=Call("weather", '{"city": "x"}')) for _ in range(ROUNDS)]
    bench.script(CHAT, *again, Said(["Enough."]))
    assert (await bot.ask("Weather?")).text == "Enough."
    assert bench.model.offered[-1] == []


async def test_a_call_that_the_length_limit_cut_is_not_run(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    call = Said(["Well,"], call=Call("weather", '{"city": "x"}'), finish="length")
    bench.script(CHAT, call)
    answer = await bot.ask("Weather?", session_id="s")
    assert (answer.text, answer.finish_reason) == ("Well,", "length")
    [turn] = await bot.turns("s")
    assert "tools" not in turn.record
