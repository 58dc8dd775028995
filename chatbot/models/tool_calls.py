"""Reads tool calls, in whatever form a model writes them, whole or while they stream."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk

from chatbot.messages import text_of
from chatbot.models.call_arguments import decode_arguments
from chatbot.models.finish_reasons import CUTTING
from chatbot.models.written_calls import WrittenCalls

LONGEST_WATCHED = 20_000  # characters of arguments that are read while they come

_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A tool that the model wants to be called.

    `problem` says why its arguments cannot be used, or is empty. Such a call has no arguments
    and must not be executed; that the model chose this tool still stands.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    problem: str = ""


def parse_tool_calls(message: AIMessage, names: Collection[str]) -> list[ToolCall]:
    """Return the calls of a message: none, if a limit or a filter cut it.

    Calls that are written as text count where they name one of `names`, the tools that were
    offered. A call in the proper form may also name another one.
    """
    if message.response_metadata.get("finish_reason") in CUTTING:
        return []
    if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
        # LangChain completes what is not closed: the text of the arguments tells.
        found = [
            _call(call["name"], call["args"], call["id"]) for call in message.tool_call_chunks
        ]
    else:
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        found = [_call(call["name"], call["args"], call["id"]) for call in calls]
    named = [call for call in found if call.name]
    if named:
        return named
    written = WrittenCalls(names)
    written.feed(str(message.text))
    written.end()
    return _written(written)


class ToolCallReader:
    """Reads the calls of a stream: the first one's name and arguments as soon as they close.

    Calls of one of `names` may be written in the text, see `WrittenCalls`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._calls: dict[int | str | None, _Growing] = {}
        self._written = WrittenCalls(names)
        self.finish_reason: str | None = None

    def feed(self, chunk: AIMessageChunk) -> str:
        """Take the next chunk of the stream and return what of its text can be shown now."""
        for fragment in chunk.tool_call_chunks:
            call = self._calls.setdefault(fragment["index"], _Growing())
            call.name += fragment["name"] or ""
            call.id = call.id or fragment["id"] or ""
            call.add(fragment["args"] or "")
        reason = chunk.response_metadata.get("finish_reason")
        self.finish_reason = reason or self.finish_reason
        return self._written.feed(text_of(chunk.content))

    def end(self) -> str:
        """Return the text that was held back and is no call; the stream ends here."""
        return self._written.end()

    @property
    def name(self) -> str | None:
        """The tool of the first call, once its name is complete."""
        call = self._first
        return call.name if call and (call.name in self._names or call.arguments) else None

    @property
    def arguments_so_far(self) -> Mapping[str, Any]:
        """The arguments of the first call whose values are complete."""
        return self._first.closed if self._first else {}

    def calls(self) -> list[ToolCall]:
        """Return the calls of a stream that has ended. See `parse_tool_calls`."""
        if self.finish_reason in CUTTING:
            return []
        self.end()
        found = [_call(call.name, call.arguments, call.id) for call in self._calls.values()]
        return [call for call in found if call.name] or _written(self._written)

    @property
    def _first(self) -> "_Growing | None":
        return next(iter(self._calls.values()), None)


class _Growing:
    """A call of which a part has come."""

    def __init__(self) -> None:
        self.name = ""
        self.id = ""
        self.arguments = ""
        self.closed: dict[str, Any] = {}
        self._position = 0  # of the first member that is not complete

    def add(self, fragment: str) -> None:
        """Take more of the arguments and note which members it completes."""
        self.arguments += fragment
        if len(self.arguments) > LONGEST_WATCHED:
            return
        if not self._position:
            start = self.arguments.find("{")
            if start < 0 or self.arguments[:start].strip():
                return  # not an object: only the end tells what it is
            self._position = start + 1
        while (member := _member(self.arguments, self._position)) is not None:
            name, value, self._position = member
            self.closed[name] = value


def _member(text: str, start: int) -> tuple[str, Any, int] | None:
    """Return the member of an object that begins at `start`, if it is complete, and its end."""
    try:
        name, end = _DECODER.raw_decode(text, _skip(text, start, " \t\r\n,"))
        end = _skip(text, end, " \t\r\n")
        if not isinstance(name, str) or text[end] != ":":
            return None
        value, end = _DECODER.raw_decode(text, _skip(text, end + 1, " \t\r\n"))
        # More digits may follow a number: only what comes after it shows that it ended.
        if isinstance(value, int | float) and text[end] not in " \t\r\n,}":
            return None
    except (ValueError, IndexError, RecursionError):
        return None
    return name, value, end


def _skip(text: str, start: int, characters: str) -> int:
    while start < len(text) and text[start] in characters:
        start += 1
    return start


def _call(name: str | None, arguments: object, call_id: str | None) -> ToolCall:
    values, problem = decode_arguments(arguments)
    return ToolCall(
        name=(name or "").strip(), arguments=values, id=call_id or "", problem=problem
    )


def _written(found: WrittenCalls) -> list[ToolCall]:
    return [
        _call(name, arguments, f"call_{number}")
        for number, (name, arguments) in enumerate(found.calls, 1)
    ]
