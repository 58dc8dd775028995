"""Whatever comes between question and answer, each prompt fits the window."""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from chatbot.errors import ModelError, SchemaError
from chatbot.models.context_window import ContextWindow
from chatbot.models.tokens import TokenCounter
from chatbot.tools.toolbox import Toolbox
from tests.integration.graph.conftest import Bench
from tests.ports import HANDBOOK, Call, Said, passage

CHAT = Said(call=Call("general_chat"))
LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer"}},
    "required": ["days"],
    "additionalProperties": False,
}
TOO_LONG = Said(error=ModelError("context_too_long", "too long"))
READS: list[int] = []


@tool
async def read(number: int, words: int) -> str:
    """Read a long text."""
    READS.append(number)
    return f"text {number} " + "word " * words


BOX = Toolbox(tools=[read])


def window(tokens: int) -> ContextWindow:
    return ContextWindow(counter=TokenCounter("some-model"), tokens=tokens, reserved=100)


def reads(number: int, words: int = 1_500) -> Said:
    return Said(call=Call("read", f'{{"number": {number}, "words": {words}}}'))


async def fits(bench: Bench, limit: ContextWindow, **also: Any) -> None:
    await limit.counter.load()
    for prompt, offered in zip(bench.model.prompts, bench.model.offered, strict=True):
        tools = [*BOX.definitions] if "read" in offered else []
        used = limit.counter.count_messages(prompt, [*tools, *also.values()])
        assert used <= limit.budget, f"{used} of {limit.budget}: {prompt[-1].type}"


def results(bench: Bench) -> list[str]:
    """Return what the last prompt has of each result, in one word."""
    found = []
    for message in bench.model.prompts[-1]:
        if isinstance(message, ToolMessage):
            text = str(message.content)
            whole = text.startswith("text") and "…" not in text
            found.append("out" if text.startswith("(") else "whole" if whole else "cut")
    return found


async def test_of_many_results_the_newest_are_whole_and_the_oldest_left_out(
    bench: Bench,
) -> None:
    limit = window(4_000)
    bot = bench.bot_with(window=limit, toolbox=BOX)
    bench.script(CHAT, *[reads(number) for number in range(4)], Said(["So it is."]))
    answer = await bot.ask("What is in the texts?", session_id="s")
    assert answer.text == "So it is."
    await fits(bench, limit)
    assert results(bench) == ["out", "out", "cut", "whole"]
    assert "What is in the texts?" in [str(m.content) for m in bench.model.prompts[-1]]
    assert "more characters)" in str(bench.model.prompts[-1][-3].content)
    [turn] = await bot.turns("s")
    assert turn.record["cut"]["results"] == 3
    assert all(len(used["result"]) > 7_000 for used in turn.record["tools"])
    bench.script(CHAT, Said(["Yes."]))
    await bot.ask("Really?", session_id="s")
    assert "So it is." in [str(m.content) for m in bench.model.prompts[-1]]
    await fits(bench, limit)


async def test_passages_keep_half_of_the_room(bench: Bench) -> None:
    limit = window(4_000)
    bench.knowledge.passages = {
        HANDBOOK.name: [passage(f"benefits {n} " + "word " * 500) for n in range(4)]
    }
    bot = bench.bot_with(window=limit, toolbox=BOX)
    bench.script(LOOK_UP, reads(1, 3_000), Said(["15 days [1]."]))
    answer = await bot.ask("benefits", session_id="s")
    await fits(bench, limit)
    assert results(bench) == ["cut"]
    asked = next(str(m.content) for m in bench.model.prompts[-1] if m.type == "human")
    assert asked.count("<passage ") >= 2
    assert [citation["number"] for citation in answer.citations] == [1]


async def test_calls_that_are_too_long_themselves_are_forgotten(bench: Bench) -> None:
    limit = window(3_000)
    bot = bench.bot_with(window=limit, toolbox=BOX)
    long = Said(call=Call("read", f'{{"number": 1, "words": 1, "why": "{"word " * 1_800}"}}'))
    bench.script(CHAT, long, long, Said(["Well."]))
    assert (await bot.ask("What?")).text == "Well."
    await fits(bench, limit)
    assert len(results(bench)) == 1


async def test_an_endpoint_that_says_too_long_after_a_tool_is_asked_for_less(
    bench: Bench,
) -> None:
    bot = bench.bot_with(window=window(30_000), toolbox=BOX)
    READS.clear()
    bench.script(CHAT, reads(7), TOO_LONG, Said(["shorter"]))
    assert (await bot.ask("What?")).text == "shorter"
    assert READS == [7]
    assert results(bench) == ["cut"]
    bench.script(CHAT, reads(8), TOO_LONG, TOO_LONG)
    with pytest.raises(ModelError, match="too long"):
        await bot.ask("What?")


async def test_what_is_sent_again_is_less_than_what_was_too_long(bench: Bench) -> None:
    bot = bench.bot_with(window=window(900_000))
    for number in range(4):
        bench.script(CHAT, Said(["word " * 500]))
        await bot.ask(f"question {number}", session_id="s")
    bench.script(CHAT, TOO_LONG, Said(["shorter"]))
    await bot.ask("next", session_id="s")
    assert len(bench.model.prompts[-1]) < len(bench.model.prompts[-2])


async def test_what_the_caller_wants_for_the_answer_is_kept_free(bench: Bench) -> None:
    limit = window(6_000)
    bot = bench.bot_with(window=limit)
    for number in range(4):
        bench.script(CHAT, Said(["word " * 500]))
        await bot.ask(f"question {number}", session_id="s")
    bench.script(CHAT, Said(["x"]))
    await bot.ask("next", session_id="s", model_parameters={"max_tokens": 4_000})
    used = limit.counter.count_messages(bench.model.prompts[-1])
    assert used <= 3_000


async def test_of_a_passage_that_is_too_long_a_part_is_shown(bench: Bench) -> None:
    limit = window(2_000)
    bench.knowledge.passages = {HANDBOOK.name: [passage("benefits: 15 days " + "字" * 9_000)]}
    bot = bench.bot_with(window=limit)
    bench.script(LOOK_UP, Said(["15 days [1]."]))
    answer = await bot.ask("benefits", session_id="s")
    await fits(bench, limit)
    assert "benefits: 15 days" in bench.asked(1)
    assert answer.citations[0]["number"] == 1


async def test_a_question_beside_which_no_passage_fits_is_refused(bench: Bench) -> None:
    limit = window(2_000)
    bot = bench.bot_with(window=limit)
    await limit.counter.load()
    text = "benefits: " + "leave, pay, " * 15
    bench.knowledge.passages = {HANDBOOK.name: [passage(text)]}
    bench.script(LOOK_UP, Said(["Nothing."]))
    await bot.ask("quantum", session_id="other")
    free = limit.budget - limit.counter.count_messages(bench.model.prompts[-1])
    bench.script(LOOK_UP)
    with pytest.raises(ModelError, match=r"no room for what was found") as raised:
        await bot.ask("benefits" + " word" * int((free - 15) / 1.2))
    assert raised.value.kind == "context_too_long"


async def test_the_schema_and_rejected_replies_belong_to_the_budget(bench: Bench) -> None:
    limit = window(4_000)
    bot = bench.bot_with(window=limit)
    schema = {**SCHEMA, "description": "word " * 500}
    for number in range(6):
        bench.script(CHAT, Said(["word " * 400]))
        await bot.ask(f"question {number}", session_id="s")
    bench.model.prompts.clear()
    bench.model.offered.clear()
    bench.script(CHAT, *[Said(["word " * 1_500])] * 4)
    with pytest.raises(SchemaError):
        await bot.ask("next", session_id="s", response_schema=schema)
    assert len(bench.model.prompts) == 5
    await fits(bench, limit, schema=schema)


async def test_tools_work_before_an_answer_in_json(bench: Bench) -> None:
    bot = bench.bot_with(window=window(30_000), toolbox=BOX)
    bench.script(
        CHAT,
        Said(["Let me see."], call=reads(3, 1).call),
        Said(["It is 15 days"]),
        Said(
            ['<tool_call>{"name": "read", "arguments": {"number": 4, "words": 1}}</tool_call>']
        ),
        Said(['{"days": 15}']),
    )
    events = [event async for event in bot.stream("How many?", response_schema=SCHEMA)]
    contents = [event["data"] for event in events if event["type"] == "content"]
    assert contents == ['{"days": 15}']
    stages = [event["data"] for event in events if event["type"] == "stage"]
    assert [stage["name"] for stage in stages] == ["routing", "answering", "tool", "tool"]
    forms = [options.get("response_format", {}).get("type") for options in bench.model.options]
    assert forms == [None, "json_schema", "json_schema", "json_schema", "json_schema"]
    assert results(bench) == ["whole", "whole"]
    assert "not valid JSON" in str(bench.model.prompts[3][-1].content)


async def test_json_from_an_endpoint_that_takes_neither_schema_nor_tools(bench: Bench) -> None:
    bot = bench.bot_with(window=window(30_000), toolbox=BOX)
    no_schema = Said(error=ModelError("bad_request", "response_format is not known"))
    no_tools = Said(error=ModelError("unsupported", "tools are not supported"))
    bench.script(CHAT, no_schema, no_tools, no_schema, Said(['{"days": 15}']))
    answer = await bot.ask("How many?", response_schema=SCHEMA)
    assert answer.text == '{"days": 15}'
    asked = [
        (options.get("response_format", {}).get("type"), offered)
        for options, offered in zip(bench.model.options, bench.model.offered, strict=True)
    ]
    assert asked[1:] == [
        ("json_schema", ["read"]),
        ("json_object", ["read"]),
        ("json_object", []),
        (None, []),
    ]
    told = ["additionalProperties" in str(prompt[0].content) for prompt in bench.model.prompts]
    assert told == [False, False, True, True, True]


async def test_reasoning_and_usage_of_json_are_told_as_they_come(bench: Bench) -> None:
    bot = bench.bot_with(window=window(30_000))
    bench.script(CHAT, Said(['{"days": 15}'], reasoning="Hm."))
    events = [event async for event in bot.stream("How many?", response_schema=SCHEMA)]
    assert [event["data"] for event in events if event["type"] == "reasoning"] == ["Hm."]
    assert events[-1]["data"]["finish_reason"] == "stop"
