"""What a turn's record may hold that comes from elsewhere: whoever reads it relies on it."""

from typing import Any, Required

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from chatbot.domain import Intent, Outcome

_OPEN = ConfigDict(extra="allow")


@with_config(_OPEN)
class Degraded(TypedDict, total=False):
    """A part of the service that did not work as it should."""

    part: Required[str]
    reason: Required[str]


@with_config(_OPEN)
class Found(TypedDict, total=False):
    """A passage, or a citation of one."""

    id: str
    text: Required[str]
    document: str
    location: str | None
    score: float
    number: int


@with_config(_OPEN)
class Record(TypedDict, total=False):
    """The fields that are read again, of which each may be missing."""

    intent: Intent | None
    reason: str | None
    outcome: Outcome | None
    query: str | None
    model: str | None
    endpoint: str | None
    replaces: str | None
    trace_id: str | None
    finish_reason: str | None
    assistants: list[str] | None
    images: list[str] | None
    passages: list[Found] | None
    citations: list[Found] | None
    degraded: list[Degraded] | None
    timings: dict[str, float] | None
    usage: dict[str, Any] | None
    cut: dict[str, int] | None
    attempts: list[dict[str, Any]] | None
    tools: list[dict[str, Any]] | None
    error: dict[str, Any] | None
    feedback: dict[str, Any] | None
    first_token_ms: float | None
    total_ms: float | None


RECORD = TypeAdapter(Record)
