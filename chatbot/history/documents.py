"""Turns as documents of MongoDB, in the form that LangChain's class for histories reads."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bson import Int64
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, message_to_dict

from chatbot.domain import Turn
from chatbot.history.entries import Entry, rating_of, read_record, write_record
from chatbot.history.search_words import indexed

Document = dict[str, Any]

SCHEMA_VERSION = 3  # a later one needs a step in `schema`

READ = ("turn", "seq", "text", "answer", "status", "started_at", "record")  # by `read_entries`

_log = logging.getLogger(__name__)


def question_id(key: str, turn_id: str) -> str:
    """Return the id of a turn's first document. The same turn always has the same."""
    return f"{key}:{quote(turn_id, safe='')}:0"


def answer_id(key: str, turn_id: str) -> str:
    """Return the id of a turn's second document."""
    return f"{key}:{quote(turn_id, safe='')}:1"


def question_document(key: str, user_id: str, entry: Entry, now: datetime) -> Document:
    """Return the document of the question, which also holds all there is about the turn."""
    turn = entry.turn
    return {
        "SessionId": key,
        "user_id": user_id,
        "turn": turn.id,
        "seq": Int64(entry.seq),
        "created_at": now,
        "kept_at": now,
        **outcome(turn),
    }


def outcome(turn: Turn) -> Document:
    """Return the fields of the question's document that a later save may replace."""
    return {
        "History": _history(HumanMessage(content=turn.question)),
        "version": SCHEMA_VERSION,
        **contents(turn),
    }


def contents(turn: Turn) -> Document:
    """Return the fields that hold the turn itself."""
    return {
        "text": turn.question,
        "answer": turn.answer,
        "status": turn.status,
        "started_at": turn.started_at.astimezone(UTC).isoformat(),
        "intent": turn.intent,
        "record": write_record(turn.record),
        "words": indexed(turn),
        **rating(turn),
    }


def rating(turn: Turn) -> Document:
    """Return the fields by which turns that were rated are found, whoever's they are."""
    thumb, rated_at = rating_of(turn)
    return {"thumb": thumb, "rated_at": Int64(rated_at)}


def answer_document(key: str, user_id: str, entry: Entry, now: datetime) -> Document:
    """Return the document of the answer, which stands behind that of the question."""
    return {
        "SessionId": key,
        "user_id": user_id,
        "turn": entry.turn.id,
        "seq": Int64(entry.seq + 1),
        "created_at": now,
        "kept_at": now,
        **answer_outcome(entry.turn),
    }


def answer_outcome(turn: Turn) -> Document:
    """Return the fields of the answer's document that a later save may replace."""
    return {
        "History": _history(AIMessage(content=turn.answer)),
        "version": SCHEMA_VERSION,
        "status": turn.status,
    }


def read_entries(documents: Sequence[Document]) -> list[Entry]:
    """Return the turns that the documents of questions hold, in the same order.

    One that cannot be read is left out, with a warning.
    """
    entries = []
    for document in documents:
        try:
            entries.append(_read(document))
        except (KeyError, TypeError, ValueError):
            _log.warning("message %s cannot be read and is left out", document["_id"])
    return entries


def _read(document: Mapping[str, Any]) -> Entry:
    turn = Turn(
        id=document["turn"],
        question=str(document["text"]),
        answer=str(document["answer"]),
        started_at=datetime.fromisoformat(document["started_at"]),
        status=document["status"],
        record=read_record(document["record"]),
    )
    return Entry(turn=turn, seq=int(document["seq"]))


def _history(message: BaseMessage) -> str:
    return json.dumps(message_to_dict(message))
