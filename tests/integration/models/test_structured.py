"""Answers in the form of a JSON schema, over endpoints that can less and less."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from chatbot.errors import InputError, ModelError, SchemaError
from chatbot.models.openai_compatible import OpenAICompatibleModel
from chatbot.models.structured import (
    LONGEST_REJECTED,
    Form,
    Structured,
    StructuredOutput,
    Written,
)
from chatbot.prompts import Prompts
from tests.integration.models.streams import opened
from tests.servers.model import ChatRequest, ModelServer, Script, answer, refuse
from tests.stopwatch import Stopwatch

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
GOOD = {"city": "巴黎", "people": 2}
TEXT = json.dumps(GOOD, ensure_ascii=False)


def form(request: ChatRequest) -> str:
    return str(request.body.get("response_format", {}).get("type", "none"))


def only(*forms: str, reply: Script) -> Callable[[ChatRequest], Script]:
    """Refuse the forms that an endpoint does not know."""
    return lambda request: (
        reply if form(request) in forms else refuse(400, "response_format is not supported")
    )


def output(schema: dict[str, Any] | None = None) -> StructuredOutput:
    return StructuredOutput(SCHEMA if schema is None else schema, Prompts.load())


async def ask(model: OpenAICompatibleModel, schema: dict[str, Any] | None = None) -> Structured:
    async def reply(asked: Form, corrections: Sequence[BaseMessage]) -> Written:
        instructions = SystemMessage(f"Be brief. {asked.wish}")
        messages = [instructions, HumanMessage("Where?"), *corrections]
        message = await model.bind(**asked.options).ainvoke(messages)
        return Written(
            text=message.text, finish_reason=message.response_metadata["finish_reason"]
        )

    return await output(schema).ask(reply)


@pytest.mark.parametrize(
    ("forms", "asked"),
    [
        pytest.param(("json_schema",), ["json_schema"], id="a schema"),
        pytest.param(("json_object", "none"), ["json_schema", "json_object"], id="JSON"),
        pytest.param(("none",), ["json_schema", "json_object", "none"], id="neither"),
    ],
)
async def test_the_strictest_form_that_an_endpoint_takes(
    forms: tuple[str, ...], asked: list[str]
) -> None:
    with ModelServer(only(*forms, reply=answer(TEXT))) as server:
        async with opened(server.base_url) as model:
            result = await ask(model)
    assert result.value == GOOD
    assert [form(request) for request in server.seen] == asked
    last = server.seen[-1]
    assert last.instructions.startswith("Be brief.")
    assert ('"additionalProperties"' in last.instructions) is (asked[-1] != "json_schema")
    assert [message["role"] for message in last.messages] == ["system", "user"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TEXT, id="bare"),
        pytest.param(f"```json\n{TEXT}\n```", id="a code block"),
        pytest.param(f"Here it is: {TEXT} Good luck!", id="among words"),
        pytest.param(f"As [1] says {{so}}: {TEXT}", id="behind other brackets"),
    ],
)
async def test_json_is_found(text: str) -> None:
    with ModelServer([answer(text)]) as server:
        async with opened(server.base_url) as model:
            assert (await ask(model)).value == GOOD


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        pytest.param('{"city": "Paris"}', '"people" is a required property', id="incomplete"),
        pytest.param('{"city": "Paris", "people": -1}', "people: -1", id="out of range"),
        pytest.param("Paris.", "not valid JSON", id="a sentence"),
        pytest.param('{"city": "Par', "not valid JSON", id="cut"),
        pytest.param('{"city": "Paris", "people": NaN}', "not valid JSON", id="no number"),
        pytest.param('{"city": "Paris", "people": 1e999}', "not valid JSON", id="infinite"),
        pytest.param("", "not valid JSON", id="nothing"),
    ],
)
async def test_a_reply_that_does_not_fit_is_corrected(bad: str, words: str) -> None:
    with ModelServer([answer(bad), answer(TEXT)]) as server:
        async with opened(server.base_url) as model:
            assert (await ask(model)).value == GOOD
    correction = server.seen[1].messages[-1]["content"]
    assert words in correction
    assert server.seen[1].messages[-2] == {"role": "assistant", "content": bad or "(nothing)"}


NUMBERS = {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "text", "finish"),
    [
        pytest.param({"type": "integer"}, "12", "length", id="an integer"),
        pytest.param({"type": "number"}, "3.1", "length", id="a number"),
        pytest.param({"type": "number"}, " -3e1\n", "length", id="a number and a line break"),
        pytest.param({}, "7", "length", id="anything"),
        pytest.param({"type": ["object", "number"]}, "7", "length", id="or a number"),
        pytest.param(NUMBERS, '{"all": [1, 2], "more": [3', "length", id="a part of a value"),
        pytest.param(NUMBERS, "Of the years [1, 2] the", "length", id="words that went on"),
        pytest.param(SCHEMA, '{"city": "巴', "length", id="half an object"),
        pytest.param({"type": "integer"}, "12", "content_filter", id="a content filter"),
    ],
)
async def test_what_was_cut_off_is_not_taken_for_the_whole(
    schema: dict[str, Any], text: str, finish: str
) -> None:
    with ModelServer([answer(text, finish=finish)]) as server:
        async with opened(server.base_url) as model:
            with pytest.raises(SchemaError, match="it was cut off") as caught:
                await ask(model, schema)
    assert caught.value.text == text
    assert len(server.seen) == 4
    assert "it was cut off" in server.seen[1].messages[-1]["content"]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        pytest.param(SCHEMA, f"{TEXT}\n\n\n  ", GOOD, id="an object and blanks"),
        pytest.param({"type": "string"}, '"巴黎"', "巴黎", id="a string"),
        pytest.param({"type": "boolean"}, "true", True, id="a word"),
    ],
)
async def test_what_has_its_end_is_whole_wherever_it_was_cut_off(
    schema: dict[str, Any], text: str, value: object
) -> None:
    with ModelServer([answer([text], finish="length")]) as server:
        async with opened(server.base_url) as model:
            assert (await ask(model, schema)).value == value


async def test_a_number_that_was_not_cut_off_is_taken() -> None:
    with ModelServer([answer("12", finish="length"), answer("1234")]) as server:
        async with opened(server.base_url) as model:
            assert (await ask(model, {"type": "integer"})).value == 1234


async def test_the_last_text_is_kept_where_nothing_fits() -> None:
    with ModelServer([answer("one"), answer("two"), answer("three"), answer("four")]) as server:
        async with opened(server.base_url) as model:
            with pytest.raises(SchemaError, match="4 tries") as caught:
                await ask(model)
    assert (caught.value.text, caught.value.code, len(server.seen)) == (
        "four",
        "model_schema",
        4,
    )


async def test_other_failures_of_the_model_are_not_retried() -> None:
    with ModelServer([refuse(429)]) as server:
        async with opened(server.base_url) as model:
            with pytest.raises(ModelError):
                await ask(model)
    assert len(server.seen) == 1


async def test_an_endpoint_that_pays_no_heed_to_the_schema_is_told_it_in_words() -> None:
    with ModelServer([answer("In Paris."), answer(TEXT)]) as server:
        async with opened(server.base_url) as model:
            assert (await ask(model)).value == GOOD
    first, second = server.seen
    assert (form(first), form(second)) == ("json_schema", "json_schema")
    assert '"additionalProperties"' not in first.instructions
    assert '"additionalProperties"' in second.instructions


async def test_what_is_no_object_is_not_asked_for_as_one() -> None:
    replies = only("none", reply=answer("[1, 2]"))
    with ModelServer(replies) as server:
        async with opened(server.base_url) as model:
            assert (await ask(model, {"type": "array"})).value == [1, 2]
    assert [form(request) for request in server.seen] == ["json_schema", "none"]


async def test_of_a_long_rejected_reply_its_ends_are_shown() -> None:
    with ModelServer([answer(["很长" * 5_000]), answer(TEXT)]) as server:
        async with opened(server.base_url) as model:
            await ask(model)
    assert len(server.seen[1].messages[-2]["content"]) < LONGEST_REJECTED + 10


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "objekt"}, id="an unknown type"),
        pytest.param({"properties": 3}, id="a wrong shape"),
        pytest.param({"$ref": "http://127.0.0.1:9/secret"}, id="a reference outside"),
        pytest.param({"$ref": "file:///etc/passwd"}, id="a reference to a file"),
        pytest.param({"pattern": "("}, id="a broken pattern"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="response schema"):
        output(schema)


async def test_a_pattern_cannot_hold_the_process() -> None:
    schema = {"type": "string", "pattern": "^(a+)+$"}
    with ModelServer(
        [answer(json.dumps("a" * 5000 + "b")), answer(json.dumps("aa"))]
    ) as server:
        async with opened(server.base_url) as model:
            stopwatch = Stopwatch()
            result = await ask(model, schema)
            assert stopwatch.seconds() < 2
    assert result.value == "aa"
