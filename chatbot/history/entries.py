"""Turns with their place in the session, in a form that every store takes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from chatbot.domain import EPOCH, MICROSECOND, THUMBS, Thumb, Turn, checked_id
from chatbot.errors import InputError

LONGEST_TURN = timedelta(hours=1)
TITLE_LENGTH = 60
TEXT_LIMIT = 400_000  # a document of MongoDB holds 16 MB, and keeps the text in two forms
RECORD_LIMIT = 1_000_000
RECORD_PART_LIMIT = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A turn and its place in its session.

    `seq` grows along the session and is even: the answer takes the place after the question.
    It is the microsecond in which the turn started, unless an earlier turn has that already.
    So stores that did not know of each other agree on the order.
    """

    turn: Turn
    seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Recent:
    """The newest turns of a session, oldest first, the last place given, and the title."""

    entries: Sequence[Entry] = ()
    last_seq: int = 0
    title: str = ""


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970. A moment without a zone is taken as UTC."""
    return (_aware(moment) - EPOCH) // MICROSECOND


def moment(microseconds: int) -> datetime:
    """Return the moment that many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def even(number: int) -> int:
    """Return the number, or the next one if it is odd."""
    return number + number % 2


def next_seq(turn: Turn, last_seq: int) -> int:
    """Return the place of a new turn behind the last one."""
    return max(even(microseconds(turn.started_at)), last_seq + 2)


def began_before(turn: Turn, cleared_at: datetime | None) -> bool:
    """Tell whether the turn was running when its session was cleared."""
    if cleared_at is None:
        return False
    return timedelta() <= cleared_at - _aware(turn.started_at) < LONGEST_TURN


def supersedes(new: Turn, old: Turn) -> bool:
    """Tell whether a turn that is saved again takes the place of what is there.

    A stopped one may have been kept by others, who knew only the beginning of its answer.
    """
    if amends(new, old):
        return True
    if old.status == "stopped" and len(new.answer) > len(old.answer):
        return True
    return new.status == "complete" and old.status != "complete"


def amends(new: Turn, old: Turn) -> bool:
    """Tell whether a turn is the same as before, with more in its record.

    That is a summary of what came before it, or what its reader thinks of it now.
    """
    if (new.status, new.answer) != (old.status, old.answer):
        return False
    gets_summary = "summary" in new.record and "summary" not in old.record
    return gets_summary or _rated_at(new) > _rated_at(old)


def _rated_at(turn: Turn) -> str:
    """Return when the turn was rated last, in ISO 8601 and UTC, or ""."""
    return str((turn.record.get("feedback") or {}).get("at", ""))


def rating_of(turn: Turn) -> tuple[Thumb | None, int]:
    """Return the turn's thumb and the microsecond of its rating; 0 where it has none.

    The record may come from anywhere.
    """
    feedback = turn.record.get("feedback")
    given = feedback if isinstance(feedback, Mapping) else {}
    thumb = given.get("thumb")
    if thumb not in THUMBS:
        return None, 0
    try:
        at = datetime.fromisoformat(str(given.get("at")))
    except ValueError:
        at = turn.started_at
    return thumb, max(microseconds(at), 1)


def clean_turn(turn: Turn) -> Turn:
    """Return the turn with a checked id and with texts that every store can keep.

    Raises:
        InputError: The turn's id is not an id.
    """
    return replace(
        turn,
        id=checked_id(turn.id, "turn id"),
        started_at=_aware(turn.started_at),
        question=_shortened(clean_text(turn.question)),
        answer=_shortened(clean_text(turn.answer)),
        record=read_record(write_record(turn.record)),
    )


def clean_text(text: str) -> str:
    """Return the text with halves of characters joined or replaced: UTF-8 has none."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def write_record(record: Mapping[str, Any]) -> str:
    """Return the audit record as JSON, without its long parts if it is too long."""
    text = _json(dict(record))
    if len(text) <= RECORD_LIMIT:
        return text
    parts = {name: len(_json(value)) for name, value in record.items()}
    kept = {name: record[name] for name, size in parts.items() if size <= RECORD_PART_LIMIT}
    left_out = [name for name in parts if name not in kept]
    return _json({**kept, "left_out": left_out})


def read_record(text: str) -> dict[str, Any]:
    """Return the audit record that `write_record` wrote."""
    record: dict[str, Any] = json.loads(text)
    return record


def checked_title(title: str) -> str:
    """Return the title on one short line.

    Raises:
        InputError: It has no words.
    """
    if not title.split():
        message = "The title of a session must have at least one word."
        raise InputError(message)
    return title_of(title)


def title_of(question: str) -> str:
    """Return the beginning of the question on one line."""
    words = " ".join(clean_text(question[: 10 * TITLE_LENGTH]).split())
    if not words:
        return "…"
    return words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1].rstrip()}…"


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _json(value: object) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False, default=str))


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"
