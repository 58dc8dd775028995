"""Calls that a model writes as text are run and never seen; what only looks like one is."""

import uuid
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from chatbot.domain import Session
from chatbot.events import Event
from chatbot.tools.toolbox import Toolbox
from graphs import Context
from tests.integration.graph.conftest import Bench, kinds
from tests.integration.graph.test_tools import CHAT, WINDOW, weather
from tests.ports import Said

CALL = '{"name": "weather", "arguments": {"city": "Concord"}}'
BOX = Toolbox(tools=[weather])
PIECES = [pytest.param(1, id="by character"), pytest.param(7, id="in pieces")]


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def seen(events: list[Event]) -> list[tuple[str, Any]]:
    """Return stages of tools and the text between them, as a reader sees them."""
    found: list[tuple[str, Any]] = []
    for event in events:
        kind, data = event["type"], event["data"]
        if kind == "content" and found and found[-1][0] == "content":
            found[-1] = ("content", found[-1][1] + data)
        elif kind == "content":
            found.append(("content", data))
        elif kind == "stage" and data["name"] == "tool":
            found.append(("tool", data["detail"]))
    return found


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"<tool_call>\n{CALL}\n</tool_call>", "", id="a tag"),
        pytest.param(
            f"Let me see.\n\n<tool_call>{CALL}</tool_call>", "Let me see.", id="words"
        ),
        pytest.param(f"<tool_call>{CALL}</tool_call>\nIt rains.", "", id="an invented result"),
        pytest.param(f"```json\n{CALL}\n```", "", id="a fence"),
        pytest.param(f"Wait.\n```\n{CALL}\n```\nSo.", "Wait.", id="a fence between words"),
        pytest.param(CALL, "", id="bare"),
        pytest.param(f"[{CALL}]", "", id="a list"),
        pytest.param(f"[TOOL_CALLS] [{CALL}]", "", id="Mistral's marker"),
        pytest.param(f"<|python_tag|>{CALL}", "", id="Llama's marker"),
        pytest.param('<function=weather>{"city": "Concord"}</function>', "", id="an element"),
        pytest.param(
            "<tool_call>\n<function=weather>\n<parameter=city>\nConcord\n</parameter>\n"
            "</function>\n</tool_call>",
            "",
            id="parameters as elements",
        ),
    ],
)
async def test_a_written_call_is_run_and_not_shown(
    bench: Bench, text: str, shown: str, size: int
) -> None:
    bot = bench.bot_with(toolbox=BOX)
    bench.script(CHAT, Said(pieces(text, size)), Said(["Sunny."]))
    events = [event async for event in bot.stream("Weather?", session_id="s")]
    said = [("content", shown)] if shown else []
    rest = f"\n\n{'Sunny.'}" if shown else "Sunny."
    assert seen(events) == [*said, ("tool", "weather"), ("content", rest)]
    assert kinds(events) == [
        *("stage", "metadata", "stage"),
        *(["content", "stage"] if shown else []),
        *("content", "usage", "end"),
    ]
    whole = shown + rest
    assert events[-1]["data"]["full_answer"] == whole
    assert events[-1]["data"]["finish_reason"] == "stop"
    [turn] = await bot.turns("s")
    assert (turn.answer, turn.status) == (whole, "complete")
    [used] = turn.record["tools"]
    assert (used["name"], used["arguments"]) == ("weather", {"city": "Concord"})
    [called, result] = bench.model.prompts[-1][-2:]
    assert (called.content, result.content) == (shown, "Concord: sunny")


@pytest.mark.parametrize("size", PIECES)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param('```json\n{"name": "Walden", "arguments": []}\n```\nSo.', id="a fence"),
        pytest.param('{"name": "weather", "title": "Weather"}', id="JSON with other members"),
        pytest.param("Qwen writes <tool_call> and </tool_call>.", id="a tag in prose"),
        pytest.param(f"Like this: `<tool_call>{CALL}</tool_call>`.", id="a quoted tag"),
        pytest.param(f"The call is {CALL}, then wait.", id="JSON in prose"),
        pytest.param("```python\nweather('Concord')\n```", id="code"),
        pytest.param("[Concord](https://example.com) < 3 `x`", id="signs"),
        pytest.param("weather, weather!\n\n* `weather`\n", id="the name"),
    ],
)
async def test_what_only_looks_like_a_call_is_shown(bench: Bench, text: str, size: int) -> None:
    bot = bench.bot_with(toolbox=BOX)
    bench.script(CHAT, Said(pieces(text, size)))
    events = [event async for event in bot.stream("How?", session_id="s")]
    assert seen(events) == [("content", text)]
    assert events[-1]["data"]["full_answer"] == text
    [turn] = await bot.turns("s")
    assert (turn.answer, turn.record.get("tools")) == (text, None)
    assert bench.used_up()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"Well.\n<tool_call>{CALL}", "Well.", id="whole"),
        pytest.param(
            'Well.\n<tool_call>{"name": "weather", "argu', "Well.", id="in the middle"
        ),
        pytest.param('Well.\n```json\n{"name": "weather", ', "Well.", id="a fence"),
        pytest.param('Well.\n```json\n{"na', 'Well.\n```json\n{"na', id="before its name"),
        pytest.param("Well.\n<tool_c", "Well.\n<tool_c", id="in the tag"),
    ],
)
async def test_a_written_call_that_the_length_limit_cut_is_not_run(
    bench: Bench, text: str, shown: str
) -> None:
    bot = bench.bot_with(toolbox=BOX)
    bench.script(CHAT, Said(pieces(text, 3), finish="length"))
    answer = await bot.ask("Weather?", session_id="s")
    assert (answer.text, answer.finish_reason) == (shown, "length")
    [turn] = await bot.turns("s")
    assert "tools" not in turn.record
    assert bench.used_up()


async def test_a_written_call_that_cannot_be_read_is_told_to_the_model(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=BOX)
    broken = '<tool_call>{"name": "weather", "arguments": {"city": }}</tool_call>'
    bench.script(CHAT, Said([broken]), Said(["I cannot."]))
    assert (await bot.ask("Weather?")).text == "I cannot."
    assert "could not be read: the arguments are not valid JSON" in bench.asked(2)


async def test_several_written_calls_are_run_in_their_order(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=BOX)
    second = CALL.replace("Concord", "Paris")
    bench.script(
        CHAT,
        Said([f"<tool_call>{CALL}</tool_call>\n<tool_call>{second}</tool_call>"]),
        Said([CALL]),
        Said(["Sunny."]),
    )
    assert (await bot.ask("Weather?")).text == "Sunny."
    *_, called, first, other, again, third = bench.model.prompts[-1]
    assert [first.content, other.content] == ["Concord: sunny", "Paris: sunny"]
    ids: list[str] = [call["id"] for said in (called, again) for call in said.tool_calls]  # type: ignore[attr-defined]
    assert len(set(ids)) == 3
    assert [each.tool_call_id for each in (first, other, third)] == ids  # type: ignore[attr-defined]


async def test_a_call_in_the_proper_form_goes_before_one_in_the_text(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=BOX)
    proper = Said([f"<tool_call>{CALL}</tool_call>"], call=WINDOW.call)
    bench.script(CHAT, proper, Said(["Sunny."]))
    answer = await bot.ask("Weather?", session_id="s")
    [turn] = await bot.turns("s")
    assert [used["arguments"]["city"] for used in turn.record["tools"]] == ["Paris"]
    assert answer.text == "Sunny."


async def test_a_stopped_reply_keeps_what_was_no_call(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=BOX)
    failing = Said(["Well. <tool_c"], error=RuntimeError("broke"))
    bench.script(CHAT, failing)
    events = [event async for event in bot.stream("Weather?", session_id="s")]
    assert events[-1]["data"]["partial_answer"] == "Well. <tool_c"


async def test_clients_that_want_tokens_see_what_everybody_sees(bench: Bench) -> None:
    bot = bench.bot_with(toolbox=BOX)
    text = f"Let me see [9].\n<tool_call>{CALL}</tool_call>"
    bench.script(CHAT, Said(pieces(text, 5), reasoning="Hm."), Said(["Sun", "ny."]))
    graph_input: Any = {"messages": [HumanMessage("Weather?")]}
    turn_id = str(uuid.uuid4())
    stream: Any = bot.graph.astream(
        graph_input,
        {"run_id": uuid.UUID(turn_id)},
        context=Context(session_id="s"),
        stream_mode="messages",
    )
    tokens = [message async for message, _ in stream]
    assert "".join(message.content for message in tokens) == "Let me see.\n\nSunny."
    assert "".join(m.additional_kwargs.get("reasoning_content", "") for m in tokens) == "Hm."
    assert {message.id for message in tokens} == {f"{turn_id}-answer"}
    [turn] = (await bench.history.load(Session(session_id="s"), limit=1)).turns
    assert turn.answer == "Let me see.\n\nSunny."
