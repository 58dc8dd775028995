"""How turns come into MongoDB: once, in their place, and not where they were cleared."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from chatbot.domain import Session
from chatbot.errors import HistoryError
from chatbot.history import session_documents
from chatbot.history.adoption import is_foreign
from chatbot.history.documents import Document
from chatbot.history.entries import Entry, began_before, microseconds, moment
from chatbot.history.forgetting import cleared_at, forget
from chatbot.history.mongo_store import MongoStore
from chatbot.history.turn_writes import session_writes

_log = logging.getLogger(__name__)


async def append(
    store: MongoStore, session: Session, entries: Sequence[Entry], *, placed: bool
) -> bool:
    """Keep turns, at the end of the session unless they are placed already.

    Doing it again changes nothing. Returns whether there is something to be adopted.

    Raises:
        ConfigurationError: The server refuses the user.
        HistoryError: The server could not be written, or refused one of the turns.
    """
    # As it comes back from the server, which keeps milliseconds.
    now = moment(microseconds(datetime.now(UTC)) // 1000 * 1000)
    change = session_documents.opened(session, entries, placed=placed, now=now, life=store.life)
    turn_ids = [entry.turn.id for entry in entries]
    async with store.reached():
        state, documents = await asyncio.gather(
            store.change(session, change), store.named(session, turn_ids, foreign=True)
        )
        foreign = any(map(is_foreign, documents))
        if foreign:  # there may be many, and the named ones not among the first
            documents = await store.named(session, turn_ids)
        is_new = state.get("created_at") == now
        if is_new:
            cleared, *_ = await asyncio.gather(
                _was_cleared(store, session, state, entries, placed=placed),
                *_remove_expired(store, session, state),
            )
            if cleared:
                state = await store.change(session, change)
            documents = store.visible(documents, state)
        if not placed:
            entries = [replace(entry, seq=int(state["last_seq"])) for entry in entries]
        entries = _wanted(entries, state["cleared_seq"], state.get("cleared_at"))
        writes = await asyncio.to_thread(
            session_writes, store.key(session), session.user_id, entries, documents, now
        )
        await store.write(writes)
        await _remove_cleared(store, session, entries)
    await _tend(store, session, state)
    return foreign


async def _was_cleared(
    store: MongoStore,
    session: Session,
    state: Document,
    entries: Sequence[Entry],
    *,
    placed: bool,
) -> bool:
    """Clear a new session of turns that began before all of its user was cleared."""
    at = await cleared_at(store, session.user_id)
    if at <= state.get("revived_at", 0):
        return False
    if len(_wanted(entries, at if placed else -1, at)) == len(entries):
        return False
    await forget(store, session, at=moment(at))
    return True


def _remove_expired(
    store: MongoStore, session: Session, state: Document
) -> tuple[Awaitable[object], ...]:
    """Remove what may be left of the session from before it expired."""
    mine = store.mine(session)
    return (
        store.messages.delete_many(mine | {"seq": {"$lte": state["cleared_seq"]}}),
        store.images.delete_many(mine | {"created_at": {"$lte": store.cutoff}}),
    )


async def _remove_cleared(
    store: MongoStore, session: Session, written: Sequence[Entry]
) -> None:
    """Remove what was written, or stored for it, if the session was cleared meanwhile."""
    state = await store.state(session)
    if state is None:
        return
    mine = store.mine(session)
    if any(entry.seq <= state["cleared_seq"] for entry in written):
        await store.messages.delete_many(mine | {"seq": {"$lte": state["cleared_seq"]}})
    if not state.get("title"):
        await store.images.delete_many(mine)


async def _tend(store: MongoStore, session: Session, state: Document) -> None:
    """Put off the end of the session's messages.

    The turns are kept already, so a failure is left to the next one.
    """
    now = datetime.now(UTC)
    try:
        if now - state["kept_at"] > store.slack:
            stamp = {"$set": {"kept_at": now}}
            where = {"_id": store.key(session), "user_id": session.user_id}
            async with store.reached():
                await store.messages.update_many(store.mine(session), stamp)
                await store.images.update_many(store.mine(session), stamp)
                await store.sessions.update_one(where, stamp)
    except HistoryError as error:
        _log.warning("session %s could not be tended: %s", session.key, error.message)


def _wanted(
    entries: Sequence[Entry], cleared_seq: int, cleared_at: int | None
) -> Sequence[Entry]:
    """Leave out what was asked before the session was cleared."""
    at = None if cleared_at is None else moment(cleared_at)
    return [
        entry
        for entry in entries
        if entry.seq > cleared_seq and not began_before(entry.turn, at)
    ]
