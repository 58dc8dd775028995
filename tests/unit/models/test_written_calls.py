"""Text that streams: what is a call is held back, everything else goes on at once."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatbot.models.written_calls import WrittenCalls

NAMES = {"weather", "current_time"}
ARGUMENTS = {"city": "Paris"}
CALL = '{"name": "weather", "arguments": {"city": "Paris"}}'
FUNCTION = (
    "<function=weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
)


def read(text: str, size: int) -> tuple[str, WrittenCalls]:
    """Return what is shown of a text that comes in pieces of a size."""
    written = WrittenCalls(NAMES)
    shown = [written.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join([*shown, written.end()]), written


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"<tool_call>{CALL}</tool_call>", "", id="a tag"),
        pytest.param(f"\n\n<TOOL_CALLS>\n{CALL}\n</TOOL_CALLS>\n", "", id="a tag in capitals"),
        pytest.param(f"Let me look.\n\n<tool_call>{CALL}", "Let me look.", id="words before"),
        pytest.param(f"<tool_call>{CALL}</tool_call> It is 20°.", "", id="words behind"),
        pytest.param(f"```json\n{CALL}\n```", "", id="a fence"),
        pytest.param(f"Like so: ```\n{CALL}\n```\nWait.", "Like so: ", id="a fence, words"),
        pytest.param(f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```", "", id="a tag, fenced"),
        pytest.param(f"<tool_call>\n```\n{CALL}\n```\n</tool_call>", "", id="a fence in a tag"),
        pytest.param(CALL, "", id="bare"),
        pytest.param(f" \n[{CALL}]", "", id="a list"),
        pytest.param(CALL.replace('"', "'"), "", id="in Python's quotes"),
        pytest.param(f"[TOOL_CALLS] [{CALL}]", "", id="Mistral's marker"),
        pytest.param(f"Now: [TOOL_CALLS]{CALL}", "Now: ", id="Mistral's marker, words"),
        pytest.param(f"<|python_tag|>{CALL}<|eom_id|>", "", id="Llama's marker"),
        pytest.param(f"<|tool_call|>[{CALL}]<|/tool_call|>", "", id="Phi's marker"),
        pytest.param(f"<tool_call>\n{FUNCTION}", "", id="Qwen's elements"),
        pytest.param(f"Hm. {FUNCTION}", "Hm. ", id="elements alone"),
        pytest.param(f"<function=weather>{json.dumps(ARGUMENTS)}</function>", "",
                     id="Llama's element"),
        pytest.param('{"arguments": {"city": "Paris"}, "name": "weather"}', "", id="name last"),
        pytest.param('{"tool": "weather", "args": {"city": "Paris"}}', "", id="other words"),
        pytest.param('{"type": "function", "id": "1", "function": {"name": "weather", '
                     f'"arguments": {json.dumps(json.dumps(ARGUMENTS))}}}}}', "",
                     id="the form of the API"),
    ],
)  # fmt: skip
def test_of_a_call_nothing_is_shown(text: str, shown: str, size: int) -> None:
    seen, written = read(text, size)
    assert seen == shown
    [(name, arguments)] = written.calls
    given = arguments if isinstance(arguments, dict) else json.loads(str(arguments))
    assert (name, given) == ("weather", ARGUMENTS)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a < b and [1] and `x` and ``` too", id="signs"),
        pytest.param("[1] says so, [TOOL_CALL] does not. <toolbox>", id="almost a marker"),
        pytest.param("Qwen writes <tool_call> tags. They hold JSON.", id="a tag in prose"),
        pytest.param(f"Write `<tool_call>{CALL}</tool_call>` then.", id="a quoted tag"),
        pytest.param(f"Write {CALL} to call it.", id="JSON in a sentence"),
        pytest.param('```json\n{"name": "Paris", "arguments": {}}\n```\nEnd', id="other names"),
        pytest.param('```json\n{"name": "weather", "port": 80}\n```', id="another member"),
        pytest.param('{"name": "weather", "unit": "°C"}', id="another member, bare"),
        pytest.param('{"title": "Walden", "year": 1854}', id="an answer in JSON"),
        pytest.param('[{"year": 1854}, 2]', id="a list"),
        pytest.param("```python\nprint({'name': 'weather'})\n```\n", id="code"),
        pytest.param(f"```text\nIt looks like this:\n{CALL}\n```", id="a call inside code"),
        pytest.param(f"```text\nAs in\n<tool_call>{CALL}</tool_call>\n```", id="a tag in code"),
        pytest.param('<tool_call>{"name": "other", "arguments": {}}</tool_call>', id="unknown"),
        pytest.param("<function=other>x</function>", id="an unknown element"),
        pytest.param("The tag is <tool_call>", id="a tag that ends it all"),
        pytest.param("Weather: use weather, [weather] or <weather>.\n\n", id="the name alone"),
        pytest.param(" \n", id="white space"),
        pytest.param('{"arguments": {"a": "' + "x" * 5_000 + '"}}', id="long, without a name"),
    ],
)
def test_what_only_looks_like_a_call_is_shown_as_it_is(text: str, size: int) -> None:
    seen, written = read(text, size)
    assert (seen, written.calls) == (text, [])


@pytest.mark.parametrize(
    ("begun", "at_most"),
    [
        pytest.param('```json\n{"title": "', 0, id="a fence with an answer"),
        pytest.param("```python\ni", 0, id="a fence with code"),
        pytest.param('{"year": 1', 0, id="an answer in JSON"),
        pytest.param("Use the <tool_call> t", 0, id="prose behind a tag"),
        pytest.param("Use the <to", 3, id="the beginning of a tag"),
        pytest.param('{"name": "weather", "unit": 1', 0, id="another member"),
        pytest.param("```json\n" + '{"arguments": {"a": "' + "x" * 2_000, 0, id="no name"),
        pytest.param("One.\n\nTwo.\n", 1, id="a line break"),
    ],
)
def test_little_is_held_for_long(begun: str, at_most: int) -> None:
    written = WrittenCalls(NAMES)
    shown = "".join(written.feed(character) for character in begun)
    assert begun.startswith(shown)
    assert len(begun) - len(shown) <= at_most


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"name": "weather", "arguments": {"city": ', id="unclosed"),
        pytest.param('<tool_call>{"name": "weather", "arguments": {oops}}', id="no JSON"),
    ],
)
def test_a_call_that_cannot_be_read_is_one_still(text: str) -> None:
    seen, written = read(text, 2)
    [(name, arguments)] = written.calls
    assert (seen, name) == ("", "weather")
    assert isinstance(arguments, str)


@pytest.mark.parametrize(
    "text", ['<tool_call>{"na', '<tool_call>{"name": "wea', '[TOOL_CALLS][{"arguments": {']
)
def test_the_beginning_of_a_call_is_not_shown_at_the_end(text: str) -> None:
    seen, written = read(f"Well. {text}", 4)
    assert (seen, written.calls) == ("Well. ", [])


def test_several_calls() -> None:
    second = '{"name": "current_time", "arguments": {}}'
    for text in (
        f"<tool_call>{CALL}</tool_call>\nand\n<tool_call>{second}</tool_call>",
        f"[{CALL}, {second}]",
        f"```json\n{CALL}\n```\n```json\n{second}\n```",
        f"{CALL}\n{second}",
    ):
        seen, written = read(text, 1)
        assert seen == ""
        assert [name for name, _ in written.calls] == ["weather", "current_time"]


PIECES = st.sampled_from(
    [CALL, "<tool_call>", "</tool_call>", "```", "```json\n", "\n", "`", "<", "[", "{", " a",
     "[TOOL_CALLS]", '"name"', "<function=weather>", "</function>", "}", "是"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join), st.integers(1, 9))
def test_pieces_do_not_matter(text: str, size: int) -> None:
    at_once, whole = read(text, max(1, len(text)))
    in_pieces, cut = read(text, size)
    assert (in_pieces, cut.calls) == (at_once, whole.calls)
    assert whole.calls or at_once == text or "<tool_call>" in text or "[TOOL_CALLS]" in text


def test_without_tools_all_passes() -> None:
    written = WrittenCalls([])
    assert written.feed(f"<tool_call>{CALL}") + written.end() == f"<tool_call>{CALL}"


def test_a_long_text_costs_little() -> None:
    text = ("Walden is a pond [1]. `Code` is not. 1 < 2.\n" * 4_000) + f"```json\n{CALL}\n```"
    started = time.process_time()
    _, written = read(text, 4)
    assert len(written.calls) == 1
    assert time.process_time() - started < 3
