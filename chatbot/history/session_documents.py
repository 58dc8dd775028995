"""The document that MongoDB holds for each session, and the ways it changes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import Int64

from chatbot.domain import EPOCH, MICROSECOND, Session, SessionCursor, SessionSummary
from chatbot.history.documents import SCHEMA_VERSION, Document
from chatbot.history.entries import (
    LONGEST_TURN,
    Entry,
    even,
    microseconds,
    title_of,
)

AT_ONCE = timedelta(seconds=5)
EARLIEST = {"$min": ["$version", SCHEMA_VERSION]}  # of the session's messages; see `Schema`


def opened(
    session: Session,
    entries: Sequence[Entry],
    *,
    placed: bool,
    now: datetime,
    life: timedelta,
) -> list[Document]:
    """Return the update for turns that are saved now, which makes the session if need be.

    A turn that is not placed yet gets the place behind the last, which is `last_seq`
    afterwards. A session that is new or expired starts behind all that may be left of an
    older one. Nothing changes if the turns belong to what was cleared.
    """
    started_at = microseconds(entries[-1].turn.started_at)
    first, top = (entries[0].seq, entries[-1].seq) if placed else (None, even(started_at))
    floor = even(microseconds(now - life))
    floor = Int64(floor if first is None else min(floor, first - 2))
    ran = [
        {"$gte": ["$cleared_at", Int64(started_at)]},
        {"$lt": ["$cleared_at", Int64(started_at + LONGEST_TURN // MICROSECOND)]},
    ]
    gone = {"$gte": [{"$ifNull": ["$cleared_seq", 0]}, Int64(top)]} if placed else False
    fresh = {"$lte": [{"$ifNull": ["$last_active", EPOCH]}, now - life]}
    untitled = {"$eq": [{"$ifNull": ["$title", ""]}, ""]}
    is_new = {"$or": [fresh, untitled]}
    title = {"$literal": title_of(entries[0].turn.question)}
    left = {"$max": ["$cleared_seq", "$last_seq", floor]}
    cleared_seq = {"$cond": [fresh, left, {"$ifNull": ["$cleared_seq", floor]}]}
    last = {"$max": ["$last_seq", cleared_seq]}
    next_place: Document = last if placed else {"$add": [last, 2]}
    change = {
        "user_id": {"$literal": session.user_id},
        "session_id": {"$literal": session.session_id},
        "cleared_seq": cleared_seq,
        "title": {"$cond": [is_new, title, "$title"]},
        "created_at": {"$cond": [is_new, now, "$created_at"]},
        "kept_at": {"$cond": [is_new, now, "$kept_at"]},
        "last_active": {"$max": ["$last_active", now]},
        "last_seq": {"$max": [next_place, Int64(top)]},
        "version": EARLIEST,
    }
    is_dropped = {"$or": [gone, {"$and": ran}]}
    changed = {"$mergeObjects": ["$$ROOT", change]}
    return [{"$replaceWith": {"$cond": [is_dropped, "$$ROOT", changed]}}]


def cleared(session: Session, *, at: datetime) -> list[Document]:
    """Return the update that forgets all turns of the session up to that moment."""
    named = {"session_id": {"$literal": session.session_id}}
    return [{"$set": named}, *cleared_before(at)]


def cleared_before(at: datetime) -> list[Document]:
    """Return the update that forgets all turns of any session up to that moment.

    What happens at once forgets all there is, whatever other machines think the time is.
    """
    is_all: Document = {"$or": [is_now(at), {"$lte": ["$last_active", at]}]}
    last_seq = {"$cond": [is_all, "$last_seq", 0]}
    place = {"$max": ["$cleared_seq", last_seq, Int64(even(microseconds(at)))]}
    change = {
        "cleared_seq": place,
        "cleared_at": {"$max": ["$cleared_at", Int64(microseconds(at))]},
        "last_seq": {"$max": ["$last_seq", place]},
        "title": {"$cond": [is_all, {"$literal": ""}, {"$ifNull": ["$title", ""]}]},
        "created_at": {"$ifNull": ["$created_at", at]},
        "last_active": {"$max": ["$last_active", at]},
        "kept_at": {"$ifNull": ["$kept_at", at]},
        "version": EARLIEST,
    }
    return [{"$set": change}]


def is_now(at: datetime) -> bool:
    """Tell whether what happened then is told at once, not after an outage."""
    return datetime.now(UTC) - at < AT_ONCE


def revived(session: Session, *, at: datetime) -> list[Document]:
    """Return the update that takes back what was cleared up to that moment.

    What is restored comes behind it, and so behind all that was cleared anywhere.
    """
    moment = Int64(microseconds(at))
    later = {"$gt": ["$cleared_at", moment]}
    change = {
        "session_id": {"$literal": session.session_id},
        "revived_at": {"$max": ["$revived_at", moment]},
        "cleared_at": {"$cond": [later, "$cleared_at", "$$REMOVE"]},
        "last_seq": {"$max": ["$last_seq", Int64(even(microseconds(at)))]},
        "last_active": {"$ifNull": ["$last_active", at]},
        "version": EARLIEST,
    }
    return [{"$set": change}]


def adopting(name: str, hold: timedelta) -> list[Document]:
    """Return the update by which one process alone adopts the session for a while.

    That is the `adopter` afterwards, who may be another one.
    """
    is_mine = {"$eq": ["$adopter", name]}
    is_free = {"$lte": [{"$ifNull": ["$adopted_until", EPOCH]}, "$$NOW"]}
    until = {"$add": ["$$NOW", hold // timedelta(milliseconds=1)]}
    takes: Document = {"$or": [is_mine, is_free]}
    change = {
        "session_id": {"$ifNull": ["$session_id", "$_id"]},
        "last_active": {"$ifNull": ["$last_active", "$$NOW"]},
        "adopter": {"$cond": [takes, name, "$adopter"]},
        "adopted_until": {"$cond": [takes, until, "$adopted_until"]},
    }
    return [{"$set": change}]


def listed(user_id: str, *, since: datetime) -> Document:
    """Return the condition for the sessions that a list of this user shows."""
    return {"user_id": user_id, "last_active": {"$gt": since}, "title": {"$gt": ""}}


def behind(cursor: SessionCursor, key: str) -> Document:
    """Return the condition for the sessions that a list shows behind the one with this key."""
    earlier = {"last_active": {"$lt": cursor.last_active}}
    return {"$or": [earlier, {"last_active": cursor.last_active, "_id": {"$gt": key}}]}


def counting(states: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return the aggregation that counts the turns of these sessions, from an index alone."""
    shown = [
        {
            "SessionId": state["_id"],
            "user_id": state["user_id"],
            "seq": {"$gt": state["cleared_seq"], "$mod": [2, 0]},
        }
        for state in states
    ]
    return [
        {"$match": {"$or": shown}},
        {"$group": {"_id": "$SessionId", "turns": {"$sum": 1}}},
    ]


def summary(state: Mapping[str, Any], turns: int) -> SessionSummary:
    """Return the session as a list shows it."""
    return SessionSummary(
        session_id=state["session_id"],
        title=state["title"],
        last_active=state["last_active"].astimezone(UTC),
        turns=turns,
    )
