"""The events of a turn: the public protocol, the same over every way in.

`stage`* · `metadata` · (`stage` | `reasoning` | `content`)* · `citations`? · `usage`? ·
`end` | `error`. Exactly one `end` or `error` closes a turn.
"""

from datetime import UTC, datetime
from typing import Any, Literal, TypedDict

from chatbot.domain import Turn
from chatbot.errors import ChatbotError, SchemaError
from chatbot.images.image import ADDRESS

EventType = Literal[
    "stage", "metadata", "reasoning", "content", "citations", "usage", "end", "error"
]
CLOSING: frozenset[EventType] = frozenset({"end", "error"})


class Event(TypedDict):
    """One event. What `data` holds follows from `type`.

    - `stage`: `name` (`loading`, `routing`, `rewriting`, `searching`, `answering`), `detail`
    - `metadata`: `session_id`, `turn_id`, `replaces` (the id of the turn whose place this one
      takes, or null), `intent`, `reason`, `original_query`, `enhanced_query`, `assistants`
      (names of those that were asked), `outcome` of the look-up (`found`, `empty`,
      `unavailable`, `forbidden`, or null where nothing was looked up), `images` (addresses),
      `degraded` (a list of `part` and `reason`); both ids are null where what was asked is
      refused before a turn begins
    - `reasoning`, `content`: a piece of text, as a string
    - `citations`: a list of `number`, `document`, `document_id`, `assistant`, `text`, `score`,
      `location`, `url`
    - `usage`: `input_tokens`, `output_tokens` and `model` of the answer, `estimated` (whether
      nobody reported them), `first_token_ms`, `total_ms`, `timings` (milliseconds per step),
      and `other`, where other calls of a model used tokens: for each its `step` (`router`,
      `rewrite_question`, or `head_start` for an answer that was begun and not used), `model`,
      `endpoint`, `input_tokens`, `output_tokens`, `estimated`
    - `end`: `full_answer`, `finish_reason`, `metadata` (as above, `degraded` completed). Where
      an assistant of RAGFlow answered by itself, the pieces may hold markers that are no more
      in `full_answer`, or lack some: only at its end it tells what they mean.
    - `error`: `code`, `message`, `retryable`, `retry_after` (seconds or null),
      `partial_answer`, and `last_text` where an answer did not fit its schema
    """

    type: EventType
    data: Any


def metadata_of(session_id: str, turn: Turn) -> dict[str, Any]:
    """Return the data of the `metadata` event of a turn, as far as it is known."""
    record = turn.record
    return {
        "session_id": session_id,
        "turn_id": turn.id,
        "replaces": record.get("replaces"),
        "intent": record.get("intent"),
        "reason": record.get("reason") or "",
        "original_query": turn.question,
        "enhanced_query": record.get("query") or turn.question,
        "assistants": record.get("assistants") or [],
        "outcome": record.get("outcome"),
        "images": [f"{ADDRESS}{name}" for name in record.get("images") or ()],
        "degraded": list(record.get("degraded") or ()),
    }


def metadata_of_none() -> dict[str, Any]:
    """Return the data of the `metadata` event where no turn began: the same fields, empty."""
    nothing = Turn(id="", question="", started_at=datetime.now(UTC))
    return {**metadata_of("", nothing), "session_id": None, "turn_id": None}


def usage_of(turn: Turn) -> dict[str, Any]:
    """Return the data of the `usage` event of a turn."""
    record = turn.record
    return {
        **(record.get("usage") or {}),
        "model": record.get("model"),
        "first_token_ms": record.get("first_token_ms"),
        "total_ms": record.get("total_ms"),
        "timings": record.get("timings") or {},
    }


def closing_events(session_id: str, turn: Turn) -> list[Event]:
    """Return what belongs behind the answer of a turn: citations, usage, its end."""
    record = turn.record
    events: list[Event] = []
    if record.get("citations"):
        events.append({"type": "citations", "data": record["citations"]})
    if turn.status == "failed" and record.get("error"):
        data = {**record["error"], "partial_answer": turn.answer}
        return [*events, {"type": "error", "data": data}]
    events.append({"type": "usage", "data": usage_of(turn)})
    reason = "stopped" if turn.status == "stopped" else record.get("finish_reason") or "stop"
    end = {
        "full_answer": turn.answer,
        "finish_reason": reason,
        "metadata": metadata_of(session_id, turn),
    }
    return [*events, {"type": "end", "data": end}]


def error_data(error: ChatbotError, partial_answer: str = "") -> dict[str, Any]:
    """Return the data of the `error` event for `error`."""
    data: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "retry_after": error.retry_after,
        "partial_answer": partial_answer,
    }
    if isinstance(error, SchemaError):
        data["last_text"] = error.text
    return data
