"""A turn in progress, in the form that the stores of leases keep."""

import json
from datetime import UTC, datetime

from chatbot.domain import Turn
from chatbot.errors import BusyError
from chatbot.history.entries import clean_text, read_record, write_record

LEASE_SECONDS = 5.0


def written(turn: Turn) -> str:
    """Return the turn as text, with all that is known of it so far."""
    fields = {
        "id": turn.id,
        "question": turn.question,
        "answer": turn.answer,
        "started_at": turn.started_at.astimezone(UTC).isoformat(),
        "record": write_record(turn.record),
    }
    return clean_text(json.dumps(fields, ensure_ascii=False))


def read(text: str) -> Turn | None:
    """Return the turn, as one that was stopped: nobody may finish it any more.

    Of a text that is no turn nothing can be kept.
    """
    try:
        kept = json.loads(text)
        return Turn(
            id=kept["id"],
            question=kept["question"],
            answer=kept["answer"],
            started_at=datetime.fromisoformat(kept["started_at"]),
            status="stopped",
            record=read_record(kept["record"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def busy() -> BusyError:
    """Return the error for a session that is answering another question."""
    message = "This conversation is still answering another question. Please wait for it."
    return BusyError(message, retry_after=1)
