"""What is forgotten in MongoDB: a session, or all that a user has."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from bson import Int64, ObjectId

from chatbot.domain import Session
from chatbot.history import session_documents
from chatbot.history.connection import TASK_SECONDS
from chatbot.history.documents import SCHEMA_VERSION, Document
from chatbot.history.entries import even, microseconds, title_of
from chatbot.history.mongo_store import MongoStore

FOREIGN_QUESTION = {"seq": None, "History": {"$regex": '^{"type": "human"'}}


async def forget(store: MongoStore, session: Session, *, at: datetime) -> int:
    """Clear the session of all that started up to that moment; return how many turns it had.

    What is left of it, a key and a time, keeps turns away that arrive later.

    Raises:
        ConfigurationError: The server refuses the user.
        HistoryError: The server could not be written, so something may be left.
    """
    mine = store.mine(session)
    async with store.reached(TASK_SECONDS):
        before = await store.state(session)
        turns = await store.messages.count_documents(mine | _asked(store, before))
        state = await store.change(session, session_documents.cleared(session, at=at))
        await _give_title(store, state)
        places = [{"seq": {"$lte": state["cleared_seq"]}}, {"seq": None}]
        await store.messages.delete_many(mine | {"$or": places})
        await store.images.delete_many(mine | {"created_at": {"$lte": at}})
    return turns


async def forget_all(store: MongoStore, user_id: str, *, at: datetime) -> int:
    """Clear all sessions of the user, also those that begin only now with an older turn.

    Raises:
        ConfigurationError: The server refuses the user.
        HistoryError: The server could not be written, so something may be left.
    """
    owned = user_id == store.owner
    mine: Document = {"user_id": {"$in": [user_id, None]} if owned else user_id}
    titled = {"user_id": user_id, "title": {"$gt": ""}}
    # Told to the second, by the ids that LangChain's class makes.
    later = {"$gte": ObjectId.from_datetime(at + timedelta(seconds=1))}
    foreign = {"seq": None, "_id": {"$not": later}}
    said = [{"created_at": {"$lte": at}}, {"seq": {"$lte": even(microseconds(at))}}, foreign]
    async with store.reached(TASK_SECONDS):
        await _mark(store, user_id, at)  # first, so that no session begins unseen
        states = await store.sessions.find(titled).to_list()
        known = {state["_id"] for state in states if store.is_live(state)}
        if owned:
            known |= set(
                await store.messages.distinct("SessionId", {"user_id": None} | foreign)
            )
        await store.sessions.update_many(titled, session_documents.cleared_before(at))
        for state in await store.sessions.find(titled).to_list():
            await _give_title(store, state)  # it goes on with what was said later
        await store.messages.delete_many(mine | {"$or": said})
        await store.images.delete_many(mine | {"created_at": {"$lte": at}})
    return len(known)


async def cleared_at(store: MongoStore, user_id: str) -> int:
    """Return the microsecond at which all sessions of the user were cleared, or 0."""
    where = {"_id": _everything(user_id), "user_id": user_id}
    mark = await store.sessions.find_one(where)
    return int(mark["cleared_at"]) if mark else 0


def _everything(user_id: str) -> str:
    """Return the key of the user's mark. No session has it: a session's id is never empty."""
    return f"{user_id} "


async def _mark(store: MongoStore, user_id: str, at: datetime) -> None:
    """Note that all was cleared. The mark expires as a session does."""
    where = {"_id": _everything(user_id), "user_id": user_id}
    latest = {"cleared_at": Int64(microseconds(at)), "last_active": at}
    change = {"$max": latest, "$setOnInsert": {"version": SCHEMA_VERSION}}
    await store.insert_once(lambda: store.sessions.update_one(where, change, upsert=True))


async def _give_title(store: MongoStore, state: Mapping[str, Any]) -> None:
    """Take the title from what is left, if it is made from what is cleared."""
    if not state["title"]:
        return
    mine = {"SessionId": state["_id"], "user_id": state["user_id"]}
    cleared = state["cleared_seq"]
    old, new = [
        await store.messages.find_one(
            mine | {"seq": {bound: cleared, "$mod": [2, 0]}}, ["text"], sort=[("seq", 1)]
        )
        for bound in ("$lte", "$gt")
    ]
    is_of_cleared = old is not None and title_of(str(old.get("text"))) == state["title"]
    if new is None or is_of_cleared:
        title = title_of(str(new.get("text"))) if new else ""
        where = {"_id": state["_id"], "user_id": state["user_id"], "title": state["title"]}
        await store.sessions.update_one(where, {"$set": {"title": title}})


def _asked(store: MongoStore, state: Document | None) -> Document:
    """Return the condition for the questions that are shown."""
    if state is None or not store.is_live(state):
        return FOREIGN_QUESTION
    ours = {"seq": {"$gt": store.cleared_seq(state), "$mod": [2, 0]}}
    return {"$or": [FOREIGN_QUESTION, ours]}
