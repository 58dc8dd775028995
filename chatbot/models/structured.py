"""Asks a model for JSON that a schema describes, and asks again where it does not fit."""

import json
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from chatbot.earlier_turns import shortened
from chatbot.errors import InputError, ModelError, SchemaError
from chatbot.prompts import Prompts

TRIES = 3
LONGEST_REJECTED = 4_000  # characters of a rejected reply that the model is shown
ERROR_LENGTH = 500

MOST_OPENINGS = 200
_CUT = {
    "length": "it was cut off, as it had reached the limit of its length.",
    "content_filter": "it was cut off by a content filter.",
}
_OPENING = re.compile(r"[\[{]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Structured:
    """A value that fits the schema, and the text of it."""

    value: Any
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A way to ask for JSON: what the endpoint is told, and what the instructions say."""

    options: Mapping[str, Any]
    wish: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What a model said, and why it ended."""

    text: str
    finish_reason: str | None = None


# Returns what the model says to a question that is asked in this form, behind corrections.
Reply = Callable[[Form, Sequence[BaseMessage]], Awaitable[Written]]


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
        text = json.dumps(self._schema, ensure_ascii=False)
        self._wish = prompts.render("schema", schema=text)

    async def ask(self, reply: Reply) -> Structured:
        """Return the first valid value of at most four replies.

        Raises:
            SchemaError: No reply was valid.
            ModelError: The model failed.
        """
        forms = self._forms()
        corrections: list[BaseMessage] = []
        text = problem = ""
        for _ in range(1 + TRIES):
            written = await self._reply(reply, forms, corrections)
            text = written.text
            value, problem = self._read(written)
            if not problem:
                return Structured(value=value, text=text)
            wish = self._prompts.render("schema_error", error=problem)
            said = shortened(text, LONGEST_REJECTED) or "(nothing)"
            # An endpoint may take a schema and pay no heed to it: now the words say it, too.
            forms[0] = replace(forms[0], wish=self._wish)
            corrections = [AIMessage(said), HumanMessage(wish)]
        message = (
            f"The language model gave no answer in the requested form, in {1 + TRIES} tries: "
            f"{problem}"
        )
        raise SchemaError(message, text=text)

    def _forms(self) -> list[Form]:
        """Return the ways to ask, from the strictest on; JSON by itself means an object."""
        described = {"name": "answer", "schema": self._schema}
        native = {"response_format": {"type": "json_schema", "json_schema": described}}
        some_json = {"response_format": {"type": "json_object"}}
        kinds = self._schema.get("type", "object")
        wishes = [some_json, {}] if "object" in kinds else [{}]
        return [
            Form(options=native),
            *(Form(options=options, wish=self._wish) for options in wishes),
        ]

    async def _reply(
        self, reply: Reply, forms: list[Form], corrections: Sequence[BaseMessage]
    ) -> Written:
        """Return a reply in the first form that the endpoint takes; drop those it refuses."""
        while True:
            try:
                return await reply(forms[0], corrections)
            except ModelError as error:
                if error.kind not in {"bad_request", "unsupported"} or len(forms) == 1:
                    raise
                del forms[0]

    def _read(self, written: Written) -> tuple[Any, str]:
        """Return the value in the text, and what is wrong with it or ""."""
        cut = _CUT.get(written.finish_reason or "", "")
        problem = cut or "it is not valid JSON."
        first = None
        for value in _whole(written.text) if cut else _values(written.text):
            found = [_line(error) for error in self._validator.iter_errors(value)]
            if not found:
                return value, ""
            if first is None:
                first, problem = value, "; ".join(found)[:ERROR_LENGTH]
        return first, problem


def _whole(text: str) -> Iterator[object]:
    """Yield the JSON value that a reply is although it was cut off, where its end is there.

    Of a number nobody knows that, nor of a value among words that may not be the one meant.
    """
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield value


def _values(text: str) -> Iterator[object]:
    """Yield the JSON value that a reply is, else those it holds in a code block or in words."""
    try:
        yield _DECODER.decode(text)
    except (ValueError, RecursionError):
        pass
    else:
        return
    end = 0
    for start in islice(_OPENING.finditer(text), MOST_OPENINGS):
        if start.start() < end:
            continue  # inside a value that was found
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        yield value


def _no_number(name: str) -> NoReturn:
    """Refuse what Python's decoder takes, and JSON has not: NaN and infinities."""
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def _line(error: Exception) -> str:
    """Return what is wrong, and where, in one line."""
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error).partition("\n")[0][:ERROR_LENGTH]
    where = "/".join(map(str, error.instance_path))
    return f"{where}: {error.message}" if where else error.message


def _refuse(uri: str) -> NoReturn:
    message = f"it refers to {uri[:100]}, outside of it"
    raise ValueError(message)
