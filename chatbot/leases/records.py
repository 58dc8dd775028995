"""A turn in progress, in the form that the stores of leases keep."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from chatbot.domain import Turn
from chatbot.errors import BusyError

LEASE_SECONDS = 5.0
SHOWN = (
    "intent",
    "reason",
    "query",
    "assistants",
    "citations",
    "model",
    "replaces",
    "thread_id",
    "trace_id",
)


def written(turn: Turn) -> str:
    """Return the turn as JSON, without the parts that only a finished turn needs."""
    record = {name: turn.record[name] for name in SHOWN if name in turn.record}
    started_at = turn.started_at.astimezone(UTC).isoformat()
    kept = {"id": turn.id, "question": turn.question, "answer": turn.answer}
    return json.dumps({**kept, "started_at": started_at, "record": record})


def read(text: str) -> Turn:
    """Return the turn, as one that was stopped: nobody may finish it any more."""
    kept: Mapping[str, Any] = json.loads(text)
    return Turn(
        id=kept["id"],
        question=kept["question"],
        answer=kept["answer"],
        started_at=datetime.fromisoformat(kept["started_at"]),
        status="stopped",
        record=kept["record"],
    )


def busy() -> BusyError:
    """Return the error for a session that is answering another question."""
    message = "This conversation is still answering another question. Please wait for it."
    return BusyError(message, retry_after=1)
