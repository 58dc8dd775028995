"""Makes sense of the arguments of a tool call, whatever form a model gives them."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

LONGEST_LITERAL = 20_000
NOT_JSON = "the arguments are not valid JSON"
NOT_AN_OBJECT = "the arguments are not a JSON object"

_DECODER = json.JSONDecoder(strict=False)
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class Undecoded:
    """What stands for text that is not JSON."""


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
        value = decode(value.strip())
    if value is None or value == []:
        return {}, ""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        return {str(name): held for name, held in value.items()}, ""
    return {}, NOT_JSON if isinstance(value, Undecoded) else NOT_AN_OBJECT


def decode(text: str) -> object:
    """Return the value that a text is: JSON, in a fence or not, or what Python writes."""
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
    return Undecoded()


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
