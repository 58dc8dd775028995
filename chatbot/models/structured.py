"""Asks a model for JSON that a schema describes, and asks again where it does not fit."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import jsonschema_rs
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.runnables import Runnable

from chatbot.errors import InputError, ModelError, SchemaError
from chatbot.prompts import Prompts

TRIES = 3
ERROR_LENGTH = 500

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True, slots=True)
class Structured:
    """A value that fits the schema, and the text of it."""

    value: Any
    text: str


class StructuredOutput:
    """What a schema asks of a model.

    The schema is given to the endpoint in its own form, else as a wish for JSON with the schema
    in the instructions, else in the instructions alone: the next simpler one where an endpoint
    refuses. Patterns are checked in linear time; a schema cannot refer to anything outside it.
    """

    def __init__(self, schema: Mapping[str, Any], prompts: Prompts) -> None:
        """Check the schema.

        Raises:
            InputError: It is not a JSON Schema, or refers to something outside it.
        """
        self._schema = dict(schema)
        self._prompts = prompts
        try:
            jsonschema_rs.meta.validate(self._schema)
            self._validator = jsonschema_rs.validator_for(
                self._schema,
                retriever=_refuse,
                pattern_options=jsonschema_rs.RegexOptions(),
            )
        except (jsonschema_rs.ValidationError, ValueError) as error:
            message = f"The response schema cannot be used: {_line(error)}"
            raise InputError(message) from None

    async def ask(
        self,
        model: Runnable[LanguageModelInput, AIMessage],
        messages: Sequence[BaseMessage],
        *,
        on_chunk: Callable[[AIMessageChunk], None] = lambda _: None,
    ) -> Structured:
        """Return the first valid value of at most four replies.

        `on_chunk` sees every chunk as it comes, for reasoning and usage: its text may not be
        valid yet.

        Raises:
            SchemaError: No reply was valid.
            ModelError: The model failed.
        """
        forms = list(self._forms(messages))
        corrections: list[BaseMessage] = []
        text = problem = ""
        for _ in range(1 + TRIES):
            text = await self._reply(model, forms, corrections, on_chunk)
            value, problem = self._read(text)
            if not problem:
                return Structured(value=value, text=text)
            wish = self._prompts.render("schema_error", error=problem)
            corrections = [AIMessage(text or "(nothing)"), HumanMessage(wish)]
        message = (
            f"The language model gave no answer in the requested form, in {1 + TRIES} tries: "
            f"{problem}"
        )
        raise SchemaError(message, text=text)

    def _forms(
        self, messages: Sequence[BaseMessage]
    ) -> Sequence[tuple[dict[str, Any], Sequence[BaseMessage]]]:
        """Return the ways to ask, from the strictest on: options and messages of each."""
        described = {"name": "answer", "schema": self._schema}
        native = {"response_format": {"type": "json_schema", "json_schema": described}}
        some_json = {"response_format": {"type": "json_object"}}
        schema = json.dumps(self._schema, ensure_ascii=False)
        instructed = _instructed(messages, self._prompts.render("schema", schema=schema))
        return [(native, messages), (some_json, instructed), ({}, instructed)]

    async def _reply(
        self,
        model: Runnable[LanguageModelInput, AIMessage],
        forms: list[tuple[dict[str, Any], Sequence[BaseMessage]]],
        corrections: Sequence[BaseMessage],
        on_chunk: Callable[[AIMessageChunk], None],
    ) -> str:
        """Return a reply in the first form that the endpoint takes; drop those it refuses."""
        while True:
            options, messages = forms[0]
            text = ""
            try:
                async for chunk in model.bind(**options).astream([*messages, *corrections]):
                    if isinstance(chunk, AIMessageChunk):
                        text += str(chunk.content)
                        on_chunk(chunk)
            except ModelError as error:
                if error.kind not in {"bad_request", "unsupported"} or len(forms) == 1:
                    raise
                del forms[0]
            else:
                return text

    def _read(self, text: str) -> tuple[Any, str]:
        """Return the value in `text`, and what is wrong with it or ""."""
        try:
            value = _value(text)
        except (ValueError, RecursionError):
            return None, "it is not valid JSON."
        found = [_line(error) for error in self._validator.iter_errors(value)]
        return value, "; ".join(found)[:ERROR_LENGTH]


def _value(text: str) -> object:
    """Return the JSON value that a reply is, or holds in a code block or among words."""
    try:
        return json.loads(text)
    except ValueError:
        start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
        if start < 0:
            raise
        return _DECODER.raw_decode(text, start)[0]


def _instructed(messages: Sequence[BaseMessage], wish: str) -> Sequence[BaseMessage]:
    """Return the messages with the wish at the end of the instructions.

    Many chat templates take only one system message, and only as the first.
    """
    if messages and isinstance(messages[0], SystemMessage):
        return [SystemMessage(f"{messages[0].text}\n\n{wish}"), *messages[1:]]
    return [SystemMessage(wish), *messages]


def _line(error: Exception) -> str:
    """Return what is wrong, and where, in one line."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error).partition("\n")[0][:ERROR_LENGTH]
    where = "/".join(map(str, error.instance_path))
    return f"{where}: {error.message}" if where else error.message


def _refuse(uri: str) -> NoReturn:
    message = f"it refers to {uri[:100]}, outside of it"
    raise ValueError(message)
