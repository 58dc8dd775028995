"""Joins the fragments of tool calls that belong together."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages.tool import ToolCallChunk


class CallFragments:
    """Gives each tool call one index, one id and one name, whatever the endpoint repeats."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._names: list[str] = []
        self._arguments: list[str] = []
        self._given: list[object] = []  # the index that the endpoint used

    def read(self, calls: object) -> Sequence[ToolCallChunk]:
        """Return the fragments in a frame, whatever is wrong with them."""
        if isinstance(calls, dict):
            calls = [calls]
        if not isinstance(calls, list):
            return []
        return [self._fragment(call) for call in calls if isinstance(call, dict)]

    def _fragment(self, call: Mapping[str, Any]) -> ToolCallChunk:
        function = call.get("function")
        function = function if isinstance(function, dict) else call
        sent_id, name = _text(call.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        position = self._position(call.get("index"), sent_id, name)
        arguments = arguments or ""
        if position is None:
            self._ids.append(sent_id or f"call_{uuid4().hex}")
            self._names.append(name)
            self._given.append(call.get("index"))
            self._arguments.append(arguments)
            position = len(self._ids) - 1
            return ToolCallChunk(
                name=name or None,
                args=arguments,
                id=self._ids[position],
                index=position,
                type="tool_call_chunk",
            )
        news = name if name and name != self._names[position] else None
        self._names[position] += news or ""
        self._arguments[position] += arguments
        return ToolCallChunk(
            name=news, args=arguments, id=None, index=position, type="tool_call_chunk"
        )

    def _position(self, index: object, sent_id: str, name: str) -> int | None:
        """Return which call a fragment continues, or nothing where it begins one."""
        if sent_id and sent_id in self._ids:
            return self._ids.index(sent_id)
        if index is not None:
            same = [i for i, given in enumerate(self._given) if given == index]
            if not same:
                return None
            # Some endpoints number every call 0: then a name with an id of its own, or after a
            # whole call, begins another one.
            whole = bool(sent_id) or _is_json(self._arguments[same[-1]])
            begins = name and whole and not self._continues(same[-1], name)
            return None if begins else same[-1]
        newest = len(self._ids) - 1
        if newest < 0 or (name and (sent_id or not self._continues(newest, name))):
            return None
        return newest

    def _continues(self, position: int, name: str) -> bool:
        """Whether a call lacks something and has this name, which is then repeated."""
        return name == self._names[position] and not _is_json(self._arguments[position])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
