"""The forms in which a model writes a call into its text, read while they grow."""

import json
import re
from collections.abc import Collection
from typing import Literal

from chatbot.models.call_arguments import Undecoded, decode

State = Literal["open", "call", "none"]
Call = tuple[str, object]

LONGEST_UNNAMED = 2_000  # characters of an object that has not said yet which tool it calls

_NAMING = frozenset({"name", "tool", "function"})
_ARGUMENTS = ("arguments", "parameters", "args")
_KEYS = _NAMING | {*_ARGUMENTS, "id", "index", "type"}
_LEAD = re.compile(r"[\s,\[]*")
_KEY = re.compile(r"""[\s,]*(["'])(\w*)\1\s*:\s*(?=\S)""")
_KEY_BEGUN = re.compile(r"""[\s,]*(?:(["'])\w*(?:\1\s*(?::\s*)?)?)?""")
_CLOSED = re.compile(r"[\s,]*\}")
_STRING = re.compile(r"""(["'])(.*)\1\s*""", re.DOTALL)


class JsonCall:
    """`{"name": ..., "arguments": {...}}` and its kin, alone or as the first of a list.

    An object with other members, or with the name of something that is no tool, is no call.
    `end` is behind it once it is whole.
    """

    def __init__(self, names: Collection[str], start: int = 0) -> None:
        self._names = names
        self._start = start
        self._at = 0
        self._key = ""
        self._value: _Value | None = None
        self.name = ""
        self.end = 0

    def read(self, text: str) -> State:
        """Tell what `text`, which only ever grows, has from the start of the object on."""
        if not self._at and not self._open(text):
            return "none" if self._start < len(text) else "open"
        while self._value is not None or self._next_key(text):
            value = self._value or _Value(self._at)
            self._value = value
            if (end := value.end(text)) is None:
                break
            if not self._take(text[self._at : end]):
                return "none"
            self._at, self._value = end, None
        else:
            if closed := _CLOSED.match(text, self._at):
                self.end = closed.end()
                return "call" if self.name else "none"
            if _KEY_BEGUN.fullmatch(text, self._at) is None:
                return "none"
        too_long = not self.name and len(text) - self._start > LONGEST_UNNAMED
        return "none" if too_long else "open"

    def call(self, text: str) -> Call:
        """Return name and arguments. Of an object that is no JSON the text is the arguments."""
        block = text[self._start : self.end or None]
        value = decode(block) if self.end else Undecoded()
        if isinstance(value, dict) and isinstance(inner := value.get("function"), dict):
            value = inner
        if not isinstance(value, dict):
            return self.name, block
        return self.name, next((value[key] for key in _ARGUMENTS if key in value), None)

    def _open(self, text: str) -> bool:
        if (lead := _LEAD.match(text, self._start)) is not None:
            self._start = lead.end()
        self._at = self._start + 1 if text.startswith("{", self._start) else 0
        return bool(self._at)

    def _next_key(self, text: str) -> bool:
        key = _KEY.match(text, self._at)
        if key is None or key[2] not in _KEYS:
            return False
        self._key, self._at = key[2], key.end()
        return True

    def _take(self, value: str) -> bool:
        """Take the value of a member; return whether the object may still be a call."""
        if self._key not in _NAMING:
            return True
        if self._key == "function" and value.startswith("{"):
            inner = JsonCall(self._names)
            whole = inner.read(value) == "call"
            self.name = inner.name
            return whole
        named = _STRING.fullmatch(value)
        self.name = named[2] if named else ""
        return self.name in self._names


class FunctionCall:
    """What follows `<function=`: `name>`, then parameters as elements or arguments as JSON."""

    def __init__(self, names: Collection[str], start: int) -> None:
        self._names = names
        self._start = start
        self._body = 0
        self._searched = 0
        self.name = ""
        self.end = 0

    def read(self, text: str) -> State:
        """Tell what `text`, which only ever grows, has from the name on."""
        if not self.name:
            longest = max(map(len, self._names)) + 3
            name, closed, _ = text[self._start : self._start + longest].partition(">")
            if not closed:
                begun = any(known.startswith(name.strip()) for known in self._names)
                return "open" if begun else "none"
            if name.strip() not in self._names:
                return "none"
            self.name, self._body = name.strip(), self._start + len(name) + 1
        end = text.find(_FUNCTION_END, max(self._body, self._searched - len(_FUNCTION_END)))
        self._searched = len(text)
        if end < 0:
            return "open"
        self.end = end + len(_FUNCTION_END)
        return "call"

    def call(self, text: str) -> Call:
        """Return name and arguments; the end of the element may be missing."""
        body = text[self._body : self.end or None].removesuffix(_FUNCTION_END)
        if _PARAMETER not in body:
            return self.name, body
        arguments = {}
        for part in body.split(_PARAMETER)[1:]:
            name, opened, content = part.partition(">")
            if opened:
                arguments[name.strip()] = _plain(content.partition("</parameter>")[0])
        return self.name, arguments


_FUNCTION_END = "</function>"
_PARAMETER = "<parameter="


class _Value:
    """Finds where a JSON value that comes in pieces ends. Looks at each character once."""

    def __init__(self, start: int) -> None:
        self._position = start
        self._depth = 0
        self._quote = ""
        self._escaped = False

    def end(self, text: str) -> int | None:
        """Return the place behind the value, or nothing where it is not whole."""
        for at in range(self._position, len(text)):
            character = text[at]
            if self._quote:
                if not self._escaped and character == self._quote:
                    self._quote = ""
                    if not self._depth:
                        return at + 1
                self._escaped = character == "\\" and not self._escaped
            elif character in "\"'":
                self._quote = character
            elif character in "{[":
                self._depth += 1
            elif character in "}],":
                if not self._depth:  # a number or a word ends where the next thing begins
                    return at
                self._depth -= character != ","
                if not self._depth and character != ",":
                    return at + 1
        self._position = len(text)
        return None


def _plain(value: str) -> object:
    """Return a parameter's JSON value, else its text."""
    text = value.strip("\n")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
