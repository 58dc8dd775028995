"""Finds tool calls that a model wrote as text, and makes sense of their arguments."""

import ast
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

LONGEST_LITERAL = 20_000
NOT_JSON = "the arguments are not valid JSON"
NOT_AN_OBJECT = "the arguments are not a JSON object"

_DECODER = json.JSONDecoder(strict=False)
_TAGGED = re.compile(r"<tool_?calls?>(.*?)(?:</tool_?calls?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_MARKED = re.compile(r"(?:\[TOOL_CALLS\]|<\|python_tag\|>)(.*)", re.DOTALL)


def written_calls(text: str, names: Collection[str]) -> list[tuple[str, object]]:
    """Return name and arguments of each call of one of `names` that `text` is or holds.

    A call stands between `<tool_call>` tags, in a fenced block, behind a model's own marker, or
    is all there is. JSON in the middle of a sentence is no call.
    """
    if not any(name in text for name in names):
        return []
    blocks: list[str] = []
    for form in (_TAGGED, _MARKED, _FENCED):
        blocks = blocks or form.findall(text)
    found = [call for block in blocks or [text] for call in _calls(block.strip())]
    return [(name, arguments) for name, arguments in found if name in names]


def decode_arguments(given: object) -> tuple[dict[str, Any], str]:
    """Return arguments as a dictionary, or none and what is wrong with them.

    Nothing at all, `null` and an empty list are no arguments. A string that holds JSON counts
    as that JSON, a list of one object as that object, objects in a row as one.
    """
    value = given
    for _ in range(3):  # some models encode twice
        if not isinstance(value, str):
            break
        if not value.strip():
            return {}, ""
        value = _decode(value.strip())
    if value is None or value == []:
        return {}, ""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        return {str(name): held for name, held in value.items()}, ""
    return {}, NOT_JSON if isinstance(value, _Undecoded) else NOT_AN_OBJECT


class _Undecoded:
    """What stands for text that is not JSON."""


def _decode(text: str) -> object:
    fenced = _FENCED.fullmatch(text)
    text = fenced[1].strip() if fenced else text
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        pass
    if text.startswith("{") and (objects := list(_objects(text))):
        return {name: value for item in objects for name, value in item.items()}
    if len(text) <= LONGEST_LITERAL and text.startswith(("{", "[")):
        try:
            return ast.literal_eval(text)  # single quotes, True and None
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            pass
    return _Undecoded()


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects that follow each other at the start of `text`, all but its rest."""
    position = 0
    while position < len(text) and text[position] == "{":
        try:
            item, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        yield item
        while position < len(text) and text[position].isspace():
            position += 1


def _calls(block: str) -> Iterator[tuple[str, object]]:
    if "<function=" in block:
        for function, body in _elements(block, "function"):
            parameters = _elements(body, "parameter")
            yield function, {key: _plain(text) for key, text in parameters}
        return
    value = _decode(block)
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            continue
        inner = item.get("function")
        held = inner if isinstance(inner, dict) else item
        name = held.get("name") or held.get("tool") or (inner if held is item else None)
        if isinstance(name, str):
            yield name, held.get("arguments", held.get("parameters", held.get("args")))


def _elements(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield name and content of each `<kind=name>` in the text, which may lack its end."""
    for part in text.split(f"<{kind}=")[1:]:
        name, opened, content = part.partition(">")
        if opened:
            yield name.strip(), content.partition(f"</{kind}>")[0]


def _plain(value: str) -> object:
    """Return a parameter's JSON value, else its text."""
    text = value.strip("\n")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
