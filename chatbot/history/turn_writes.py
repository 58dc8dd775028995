"""The writes that bring a turn into MongoDB, harmless when repeated."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pymongo import UpdateOne

from chatbot.domain import Turn
from chatbot.history.documents import (
    Document,
    answer_document,
    answer_id,
    answer_outcome,
    contents,
    outcome,
    question_document,
    question_id,
    rating,
    read_entries,
)
from chatbot.history.entries import Entry, amends, supersedes


def session_writes(
    key: str, user_id: str, entries: Iterable[Entry], stored: Sequence[Document], now: datetime
) -> list[UpdateOne]:
    """Return the writes for the turns, given the documents of those that are stored.

    The question's document alone decides what the turn is; the answer's is there for readers
    of messages. So a turn of which only the first arrived is whole, and is completed here.
    """
    adopted = {
        document.get("turn"): document["_id"]
        for document in stored
        if not isinstance(document["_id"], str)
    }
    known = {entry.turn.id: entry for entry in read_entries(stored)}
    writes: list[UpdateOne] = []
    for entry in entries:
        old = known.get(entry.turn.id)
        if entry.turn.id not in adopted:
            writes += _writes(key, user_id, entry, old, now)
        elif old is not None and amends(entry.turn, old.turn):
            writes.append(_amendment(adopted[entry.turn.id], user_id, entry.turn))
    return writes


def _writes(
    key: str, user_id: str, entry: Entry, old: Entry | None, now: datetime
) -> list[UpdateOne]:
    if old is None:
        return _inserts(key, user_id, entry, now)
    placed = Entry(turn=entry.turn, seq=old.seq)
    if amends(entry.turn, old.turn):
        return [_amendment(question_id(key, old.turn.id), user_id, entry.turn)]
    if supersedes(entry.turn, old.turn):
        return _replacements(key, user_id, placed, now)
    if _same(entry.turn, old.turn):
        return _inserts(key, user_id, placed, now)
    return []


def _amendment(number: object, user_id: str, turn: Turn) -> UpdateOne:
    """Return the write of what is new in the record of a turn that is the same otherwise."""
    same = {"_id": number, "user_id": user_id, "status": turn.status}
    return UpdateOne(same, {"$set": {"record": contents(turn)["record"], **rating(turn)}})


def _inserts(key: str, user_id: str, entry: Entry, now: datetime) -> list[UpdateOne]:
    question = question_document(key, user_id, entry, now)
    writes = [_insert(question_id(key, entry.turn.id), question)]
    if entry.turn.answer:
        answer = answer_document(key, user_id, entry, now)
        writes.append(_insert(answer_id(key, entry.turn.id), answer))
    return writes


def _replacements(key: str, user_id: str, entry: Entry, now: datetime) -> list[UpdateOne]:
    turn = entry.turn
    unfinished = {"user_id": user_id, "status": {"$in": ["stopped", "failed"]}}
    number = answer_id(key, turn.id)
    writes = [
        UpdateOne({"_id": question_id(key, turn.id)} | unfinished, {"$set": outcome(turn)}),
        UpdateOne({"_id": number} | unfinished, {"$set": answer_outcome(turn)}),
    ]
    if turn.answer:
        writes.append(_insert(number, answer_document(key, user_id, entry, now)))
    return writes


def _insert(number: str, document: dict[str, object]) -> UpdateOne:
    where = {"_id": number, "user_id": document["user_id"]}
    return UpdateOne(where, {"$setOnInsert": document}, upsert=True)


def _same(new: Turn, old: Turn) -> bool:
    return new.status == old.status and new.answer == old.answer
