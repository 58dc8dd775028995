"""The document that MongoDB holds for each session, and the ways it changes."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import Int64

from chatbot.domain import Session, SessionSummary
from chatbot.history.documents import SCHEMA_VERSION, Document
from chatbot.history.entries import EPOCH, even, microseconds


def opened(  # noqa: PLR0913 - the parts of one update
    session: Session,
    *,
    title: str,
    places: tuple[int, int] | None,
    started_at: datetime,
    now: datetime,
    life: timedelta,
) -> list[Document]:
    """Return the update for turns that are saved now, which makes the session if need be.

    A turn that has no place yet gets the one behind the last, which is `last_seq` afterwards;
    `places` are the first and last of turns that have. A session that is new or expired
    starts behind anything that may be left of an older one.
    """
    first, top = places or (microseconds(now), even(microseconds(started_at)))
    floor = Int64(even(min(microseconds(now - life), first - 2)))
    fresh = {"$lte": [{"$ifNull": ["$last_active", EPOCH]}, now - life]}
    last = {"$max": [{"$ifNull": ["$last_seq", floor]}, "$cleared_seq"]}
    next_place: Document = last if places else {"$add": [last, 2]}
    return [
        {
            "$set": {
                "cleared_seq": {
                    "$cond": [
                        fresh,
                        {"$max": ["$cleared_seq", "$last_seq", floor]},
                        {"$ifNull": ["$cleared_seq", floor]},
                    ]
                },
                "new": {"$or": [fresh, {"$eq": [{"$ifNull": ["$title", ""]}, ""]}]},
            }
        },
        {
            "$set": {
                "user_id": {"$literal": session.user_id},
                "session_id": {"$literal": session.session_id},
                "title": {"$cond": ["$new", {"$literal": title}, "$title"]},
                "created_at": {"$cond": ["$new", now, "$created_at"]},
                "kept_at": {"$cond": ["$new", now, "$kept_at"]},
                "last_active": {"$max": ["$last_active", now]},
                "last_seq": {"$max": [next_place, Int64(top)]},
                "version": SCHEMA_VERSION,
            }
        },
        {"$unset": "new"},
    ]


def cleared(session: Session, *, at: datetime) -> list[Document]:
    """Return the update that forgets all turns up to that moment."""
    place = {"$max": ["$cleared_seq", "$last_seq_until", Int64(even(microseconds(at)))]}
    return [
        {
            "$set": {
                "last_seq_until": {"$cond": [{"$lte": ["$last_active", at]}, "$last_seq", 0]}
            }
        },
        {
            "$set": {
                "user_id": {"$literal": session.user_id},
                "session_id": {"$literal": session.session_id},
                "cleared_seq": place,
                "cleared_at": {"$max": ["$cleared_at", Int64(microseconds(at))]},
                "last_seq": {"$max": ["$last_seq", place]},
                "title": {"$literal": ""},
                "created_at": {"$ifNull": ["$created_at", at]},
                "last_active": {"$max": ["$last_active", at]},
                "kept_at": {"$ifNull": ["$kept_at", at]},
                "version": SCHEMA_VERSION,
            }
        },
        {"$unset": "last_seq_until"},
    ]


def listed(user_id: str, *, since: datetime, before: datetime | None = None) -> Document:
    """Return the condition for the sessions that a list of this user shows."""
    active = {"$gt": since} if before is None else {"$gt": since, "$lt": before}
    return {"user_id": user_id, "last_active": active, "title": {"$gt": ""}}


def listing(where: Document, *, limit: int, messages: str) -> list[Document]:
    """Return the aggregation that lists these sessions with the number of their turns."""
    counted = [
        {
            "$match": {
                "$expr": {
                    "$and": [
                        {"$eq": ["$SessionId", "$$key"]},
                        {"$gt": ["$seq", "$$cleared"]},
                    ]
                },
                "seq": {"$mod": [2, 0]},
            }
        },
        {"$count": "turns"},
    ]
    return [
        {"$match": where},
        {"$sort": {"last_active": -1, "_id": 1}},
        {"$limit": limit},
        {
            "$lookup": {
                "from": messages,
                "let": {"key": "$_id", "cleared": "$cleared_seq"},
                "pipeline": counted,
                "as": "counted",
            }
        },
    ]


def summary(document: Mapping[str, Any]) -> SessionSummary:
    """Return the session as a list shows it."""
    counted = document["counted"]
    return SessionSummary(
        session_id=document["session_id"],
        title=document["title"],
        last_active=document["last_active"].astimezone(UTC),
        turns=counted[0]["turns"] if counted else 0,
    )
