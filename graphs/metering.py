"""Keeps account of the model's calls: who was asked, how much was read and written."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage

from chatbot.errors import ModelError
from chatbot.models.tokens import estimate

_TOKENS = ("input_tokens", "output_tokens")


@dataclass(kw_only=True, slots=True)
class Meter:
    """What is known of one call, also of one that is stopped, breaks off or is left early.

    Such a call reports no usage. Where its model has tokens (`counts`), they are estimated from
    what was asked, with these `tools`, and from what has come.
    """

    messages: Sequence[BaseMessage]
    tools: Sequence[Mapping[str, Any]] = ()
    counts: bool = True
    facts: dict[str, Any] = field(default_factory=dict)
    _reported: list[tuple[int, int]] = field(default_factory=list)
    _written: list[str] = field(default_factory=list)
    _read: int | None = None

    def take(self, chunk: AIMessageChunk) -> None:
        """Note what a piece of the reply tells."""
        if isinstance(chunk.content, str):
            self._written.append(chunk.content)
        if thought := chunk.additional_kwargs.get("reasoning_content"):
            self._written.append(thought)
        for call in chunk.tool_call_chunks:
            self._written += [call["name"] or "", call["args"] or ""]
        if chunk.response_metadata:
            self.facts |= {k: v for k, v in chunk.response_metadata.items() if v}
        if used := chunk.usage_metadata:
            self._reported.append((used["input_tokens"], used["output_tokens"]))

    def fail(self, error: ModelError) -> None:
        """Note what a failure tells."""
        asked = {"endpoint": error.endpoint, "asked_model": error.model}
        self.facts |= {name: value for name, value in asked.items() if value}
        if error.attempts:
            self.facts["attempts"] = error.attempts

    @property
    def model(self) -> str | None:
        """The model, as it calls itself, else as it was asked for."""
        return self.facts.get("model_name") or self.facts.get("asked_model")

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The endpoints that failed."""
        return [dict(each) for each in self.facts.get("attempts") or ()]

    def usage(self) -> dict[str, Any]:
        """Return the tokens, as they were reported or estimated; none of a call without."""
        if any(map(any, self._reported)):
            total = map(sum, zip(*self._reported, strict=True))  # some providers tell in pieces
            estimated = bool(self.facts.get("usage_estimated"))
            return {**dict(zip(_TOKENS, total, strict=True)), "estimated": estimated}
        if not self.counts or not any(self._written):
            return {**dict.fromkeys(_TOKENS), "estimated": False}
        if self._read is None:
            asked = [message.text for message in self.messages]
            self._read = estimate("\n".join([*asked, *map(_as_json, self.tools)]))
        wrote = estimate("".join(self._written))
        return {"input_tokens": self._read, "output_tokens": wrote, "estimated": True}


class Asides:
    """The calls of a turn beside its answer: what each used, and which endpoints failed."""

    def __init__(self) -> None:
        self._spent: list[dict[str, Any]] = []
        self._attempts: list[dict[str, Any]] = []

    def note(self, meter: Meter, step: str) -> None:
        """Note a call that has ended, however it did."""
        self._attempts += [{**each, "step": step} for each in meter.attempts]
        used = meter.usage()
        if used["input_tokens"] is not None:
            asked = {"model": meter.model, "endpoint": meter.facts.get("endpoint")}
            self._spent.append({"step": step, **asked, **used})

    def added_to_usage(self, usage: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the usage of the answer with that of the other calls."""
        return {**(usage or {}), **({"other": list(self._spent)} if self._spent else {})}

    def added_to(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of the turn with these calls, which came before the answer's."""
        found = dict(record)
        if self._spent:
            found["usage"] = self.added_to_usage(record.get("usage"))
        if self._attempts:
            found["attempts"] = [*self._attempts, *(record.get("attempts") or ())]
        return found


def added(meters: Iterable[Meter]) -> dict[str, Any]:
    """Return the tokens of several calls together."""
    usages = [meter.usage() for meter in meters]
    total: dict[str, Any] = {}
    for name in _TOKENS:
        known = [usage[name] for usage in usages if usage[name] is not None]
        total[name] = sum(known) if known else None
    return {**total, "estimated": any(usage["estimated"] for usage in usages)}


async def metered(
    chunks: AsyncIterator[AIMessageChunk], meter: Meter
) -> AsyncGenerator[AIMessageChunk]:
    """Yield the pieces of a reply, and note what they tell."""
    try:
        async with aclosing(cast("AsyncGenerator[AIMessageChunk]", chunks)) as reply:
            async for chunk in reply:
                meter.take(chunk)
                yield chunk
    except ModelError as error:
        meter.fail(error)
        raise


def _as_json(tool: Mapping[str, Any]) -> str:
    return json.dumps(tool, ensure_ascii=False)
