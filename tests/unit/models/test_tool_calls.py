"""Tool calls in every form in which models write them."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk

from chatbot.models.tool_calls import ToolCall, ToolCallReader, parse_tool_calls

NAMES = {"knowledge_base", "general_chat"}
QUESTION = {"question": "瓦尔登湖在哪里？"}
JSON = json.dumps(QUESTION, ensure_ascii=False)
CALL = f'{{"name": "knowledge_base", "arguments": {JSON}}}'


def chunk(
    args: str | None, *, name: str | None = "knowledge_base", index: int | None = 0
) -> AIMessageChunk:
    fragment = tool_call_chunk(name=name, args=args, id="call_1", index=index)
    return AIMessageChunk(content="", tool_call_chunks=[fragment])


def end(reason: str) -> AIMessageChunk:
    return AIMessageChunk(content="", response_metadata={"finish_reason": reason})


@pytest.mark.parametrize(
    ("arguments", "expected", "problem"),
    [
        pytest.param(JSON, QUESTION, "", id="an object"),
        pytest.param("", {}, "", id="nothing"),
        pytest.param(None, {}, "", id="absent"),
        pytest.param("null", {}, "", id="null"),
        pytest.param("[]", {}, "", id="an empty list"),
        pytest.param(json.dumps(JSON), QUESTION, "", id="a string that holds JSON"),
        pytest.param(f"[{JSON}]", QUESTION, "", id="a list of one object"),
        pytest.param(f"{{}}{JSON}", QUESTION, "", id="an empty object in front"),
        pytest.param(f"```json\n{JSON}\n```", QUESTION, "", id="a fenced block"),
        pytest.param(f"{JSON}</tool_call>", QUESTION, "", id="a tag at the end"),
        pytest.param("{'question': 'why', 'deep': True}", {"question": "why", "deep": True}, "",
                     id="Python's quotes"),
        pytest.param('{"question": "a\nb"}', {"question": "a\nb"}, "", id="a bare line break"),
        pytest.param('{"question": "wh', {}, "not valid JSON", id="an unclosed string"),
        pytest.param("why?", {}, "not valid JSON", id="a sentence"),
        pytest.param("[1, 2]", {}, "not a JSON object", id="a list of numbers"),
        pytest.param("7", {}, "not a JSON object", id="a number"),
        pytest.param("[" * 100_000, {}, "not valid JSON", id="brackets without end"),
    ],
)  # fmt: skip
def test_arguments_are_read_or_their_problem_named(
    arguments: str | None, expected: dict[str, Any], problem: str
) -> None:
    message = chunk(arguments) + end("tool_calls")
    reader = ToolCallReader(NAMES)
    reader.feed(chunk(arguments))
    reader.feed(end("tool_calls"))
    for calls in (parse_tool_calls(message, NAMES), reader.calls()):
        assert [(call.name, call.arguments) for call in calls] == [("knowledge_base", expected)]
        assert problem in calls[0].problem
        assert bool(problem) is bool(calls[0].problem)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"<tool_call>\n{CALL}\n</tool_call>", id="between tags"),
        pytest.param(f"Let me look.\n<tool_call>{CALL}", id="after an opening tag alone"),
        pytest.param(f"```json\n{CALL}\n```", id="a fenced block"),
        pytest.param(f'{{"name": "knowledge_base", "parameters": {JSON}}}', id="bare JSON"),
        pytest.param(f"[TOOL_CALLS] [{CALL}]", id="a marker"),
        pytest.param(
            f'<tool_call>{{"function": {{"name": "knowledge_base", "arguments": '
            f"{json.dumps(JSON)}}}}}</tool_call>",
            id="in the form of the API",
        ),
        pytest.param(
            "<tool_call>\n<function=knowledge_base>\n<parameter=question>\n瓦尔登湖在哪里？\n"
            "</parameter>\n</function>\n</tool_call>",
            id="as elements",
        ),
    ],
)  # fmt: skip
def test_a_call_written_as_text_is_found(text: str) -> None:
    reader = ToolCallReader(NAMES)
    for character in text:
        reader.feed(AIMessageChunk(content=character))
    expected = [ToolCall(name="knowledge_base", arguments=QUESTION, id="call_1")]
    assert parse_tool_calls(AIMessage(content=text), NAMES) == expected
    assert reader.calls() == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("I would ask the knowledge_base about it.", id="a name in a sentence"),
        pytest.param('Use {"name": "knowledge_base"} to search.', id="JSON in a sentence"),
        pytest.param('<tool_call>{"name": "remove_everything"}</tool_call>', id="another tool"),
        pytest.param('{"name": ["knowledge_base"]}', id="a name that is a list"),
        pytest.param("", id="nothing"),
    ],
)
def test_other_text_is_no_call(text: str) -> None:
    assert parse_tool_calls(AIMessage(content=text), NAMES) == []


def test_a_call_that_the_length_limit_cut_is_not_returned() -> None:
    cut = AIMessage(
        content='<tool_call>{"name": "knowledge_base", "arguments": {}}',
        response_metadata={"finish_reason": "length"},
    )
    reader = ToolCallReader(NAMES)
    reader.feed(chunk(JSON))
    reader.feed(end("length"))
    assert parse_tool_calls(cut, NAMES) == []
    assert parse_tool_calls(chunk(JSON) + end("length"), NAMES) == []
    assert reader.calls() == []


def test_a_call_in_the_proper_form_may_name_an_unknown_tool() -> None:
    assert [call.name for call in parse_tool_calls(chunk("{}", name="other"), NAMES)] == [
        "other"
    ]


def test_parallel_calls_keep_their_order() -> None:
    reader = ToolCallReader(NAMES)
    for piece in (
        chunk('{"question": ', index=0),
        chunk("{}", name="general_chat", index=1),
        chunk('"one"}', name=None, index=0),
    ):
        reader.feed(piece)
    assert [(call.name, call.arguments) for call in reader.calls()] == [
        ("knowledge_base", {"question": "one"}),
        ("general_chat", {}),
    ]


def test_name_and_arguments_are_known_as_soon_as_they_are_complete() -> None:
    reader = ToolCallReader(NAMES)
    seen = []
    text = '{"assistants": ["Walden", "Handbook"], "limit": 12, "question": "where?"}'
    reader.feed(chunk("", name="knowledge"))
    assert reader.name is None
    reader.feed(chunk("", name="_base"))
    assert reader.name == "knowledge_base"
    for character in text:
        reader.feed(chunk(character, name=None))
        seen.append(dict(reader.arguments_so_far))
    after = {character: seen[text.index(character)] for character in ("]", "1", "2", "q")}
    assert after["]"] == {"assistants": ["Walden", "Handbook"]}
    assert "limit" not in after["2"]
    assert after["q"] == {"assistants": ["Walden", "Handbook"], "limit": 12}
    assert seen[-1] == json.loads(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), st.integers(1, 9))
def test_arguments_in_fragments_are_the_arguments(arguments: dict[str, Any], cut: int) -> None:
    text = json.dumps(arguments)
    reader = ToolCallReader(NAMES)
    for start in range(0, len(text), cut):
        reader.feed(chunk(text[start : start + cut], name=None if start else "knowledge_base"))
        known = reader.arguments_so_far
        assert all(arguments[name] == value for name, value in known.items())
    assert reader.arguments_so_far == arguments
    assert reader.calls()[0].arguments == arguments


@settings(deadline=None)
@given(st.text(alphabet="<tool_call>{}[]\"':,namekgd_bs`\n ", max_size=60))
def test_any_text_is_read(text: str) -> None:
    for call in parse_tool_calls(AIMessage(content=text), NAMES):
        assert call.name in NAMES


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "<tool_call><function=knowledge_base>" + "<parameter=a>" * 8000, id="open"
        ),
        pytest.param("knowledge_base" + "<function=" * 20_000, id="no names"),
        pytest.param("knowledge_base" + "<tool_call>" * 20_000, id="tags"),
        pytest.param("knowledge_base ```json\n" * 10_000, id="fences"),
        pytest.param("knowledge_base {" * 20_000, id="braces"),
        pytest.param(CALL * 5000, id="many calls"),
    ],
)
def test_long_texts_are_read_in_no_time(text: str) -> None:
    started = time.process_time()
    parse_tool_calls(AIMessage(content=text), NAMES)
    assert time.process_time() - started < 2


def test_long_arguments_are_read_in_no_time() -> None:
    text = json.dumps({"question": "why, " * 8_000})
    reader = ToolCallReader(NAMES)
    started = time.process_time()
    for at in range(0, len(text), 5):
        reader.feed(chunk(text[at : at + 5], name=None if at else "knowledge_base"))
    assert reader.calls()[0].arguments == json.loads(text)
    assert time.process_time() - started < 8
