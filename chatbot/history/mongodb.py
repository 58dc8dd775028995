"""The history in MongoDB: a document per session, and one per message."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import DESCENDING, UpdateOne
from pymongo.errors import DuplicateKeyError

from chatbot.domain import (
    ANONYMOUS,
    LoadedHistory,
    Session,
    SessionSummary,
    Turn,
    checked_id,
)
from chatbot.errors import ChatbotError, HistoryError, InputError
from chatbot.history import session_documents
from chatbot.history.connection import TASK_SECONDS, Client, deadline
from chatbot.history.documents import (
    Document,
    question_id,
    read_entries,
)
from chatbot.history.entries import (
    Entry,
    Recent,
    began_before,
    clean_turn,
    moment,
    title_of,
)
from chatbot.history.indexes import Indexes
from chatbot.history.turn_writes import turn_writes

QUESTIONS = {"$not": {"$mod": [2, 1]}}  # the places of questions, and documents without one
NEWEST_FIRST = [("seq", DESCENDING), ("_id", DESCENDING)]

_log = logging.getLogger(__name__)


class MongoChatHistory:
    """Keeps turns in the format of LangChain's class, which can read them in order.

    The caller owns `client`. A session goes as a whole, `ttl_days` after its last activity.
    Documents without a user, which LangChain's class wrote, belong to `owner`.
    """

    def __init__(
        self,
        client: Client,
        *,
        database: str,
        collection: str,
        ttl_days: float,
        owner: str = ANONYMOUS,
    ) -> None:
        self._client = client
        self._messages = client[database][collection]
        self._sessions = client[database][f"{collection}_sessions"]
        self._life = timedelta(days=ttl_days)
        # Messages are stamped anew once in `slack`, so they outlive their session.
        self._slack = min(timedelta(days=1), self._life)
        self._owner = owner
        self._indexes = Indexes(
            sessions=self._sessions,
            messages=self._messages,
            session_life=self._life,
            message_life=self._life + 2 * self._slack,
        )

    async def close(self) -> None:
        """End what goes on in the background."""
        await self._indexes.close()

    async def ping(self) -> None:
        """Return when the server has answered.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server did not answer.
        """
        async with deadline():
            await self._client.admin.command("ping")

    async def check(self) -> str:
        """See `ChatHistory.check`."""
        try:
            async with deadline():
                await self._sessions.find_one({"_id": ""}, {"_id": 1})
        except ChatbotError as error:
            return error.message
        return ""

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        recent = await self.recent(session, limit=limit)
        return LoadedHistory(turns=tuple(entry.turn for entry in recent.entries))

    async def recent(self, session: Session, *, limit: int) -> Recent:
        """Return the newest turns with their places, oldest first.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server could not be read.
        """
        newest = self._messages.find(self._mine(session) | {"seq": QUESTIONS})
        newest = newest.sort(NEWEST_FIRST).limit(max(limit, 1))
        async with deadline():
            state, documents = await asyncio.gather(self._state(session), newest.to_list())
        self._indexes.want()
        entries = read_entries(self._visible(documents, state)[::-1])
        last_seq = int(state["last_seq"]) if state else 0
        return Recent(entries=tuple(entries[-limit:] if limit else ()), last_seq=last_seq)

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        number = question_id(self._key(session), checked_id(turn_id, "turn id"))
        numbers = [number, *([ObjectId(turn_id)] if ObjectId.is_valid(turn_id) else [])]
        found = self._messages.find(self._mine(session) | {"_id": {"$in": numbers}})
        async with deadline():
            state, documents = await asyncio.gather(self._state(session), found.to_list())
        entries = read_entries(self._visible(documents, state))
        return entries[0].turn if entries else None

    async def save(self, session: Session, turn: Turn) -> str:
        """See `ChatHistory.save`."""
        await self._append(session, [Entry(turn=clean_turn(turn), seq=0)], placed=False)
        return ""

    async def append(self, session: Session, entries: Sequence[Entry]) -> None:
        """Keep turns that have their places already. Doing it again changes nothing.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server could not be written, or refused one of the turns.
        """
        await self._append(session, entries, placed=True)

    async def clear(self, session: Session) -> int:
        """See `ChatHistory.clear`."""
        return await self.forget(session, at=datetime.now(UTC))

    async def forget(self, session: Session, *, at: datetime) -> int:
        """Clear the session of all that started up to that moment.

        What is left of it, a key and a time, keeps turns away that arrive later.
        """
        key, mine = self._key(session), self._mine(session)
        async with deadline(TASK_SECONDS):
            before = await self._state(session)
            turns = await self._messages.count_documents(mine | self._asked(before))
            state = await self._upsert(session, session_documents.cleared(session, at=at))
            places = [{"seq": {"$lte": state["cleared_seq"]}}, {"seq": None}]
            await self._messages.delete_many(mine | {"$or": places})
        _log.info("session %s cleared", key)
        return turns

    async def sessions(self, user_id: str, *, limit: int) -> Sequence[SessionSummary]:
        """See `ChatHistory.sessions`."""
        checked_id(user_id, "user id", slash=True)
        if limit < 1:
            return ()
        pipeline = session_documents.listing(
            user_id, since=self._cutoff(), limit=limit, messages=self._messages.name
        )
        async with deadline(TASK_SECONDS):
            documents = await (await self._sessions.aggregate(pipeline)).to_list()
        return tuple(session_documents.summary(document) for document in documents)

    async def _append(
        self, session: Session, entries: Sequence[Entry], *, placed: bool
    ) -> None:
        key = self._key(session)
        numbers = [question_id(key, entry.turn.id) for entry in entries]
        stored = self._messages.find(self._mine(session) | {"_id": {"$in": numbers}})
        async with deadline():
            before, documents = await asyncio.gather(
                self._sessions.find_one({"_id": key}), stored.to_list()
            )
            entries = _wanted(entries, before, placed=placed)
            if not entries:
                return
            now = datetime.now(UTC)
            opened = session_documents.opened(
                session,
                title=title_of(entries[0].turn.question),
                places=(entries[0].seq, entries[-1].seq) if placed else None,
                started_at=entries[0].turn.started_at,
                now=now,
                life=self._life,
            )
            state = await self._upsert(session, opened)
            if not placed:
                entries = [replace(entries[0], seq=int(state["last_seq"]))]
            known = {entry.turn.id: entry for entry in read_entries(documents)}
            writes: list[UpdateOne] = []
            for entry in entries:
                old = known.get(entry.turn.id)
                writes += turn_writes(key, session.user_id, entry, old, now)
            if writes:
                await self._messages.bulk_write(writes)
        self._indexes.want()
        await self._tend(session, before, state)

    async def _upsert(self, session: Session, pipeline: list[Document]) -> Document:
        """Change the session's document and return it."""
        where = {"_id": self._key(session), "user_id": session.user_id}
        for _ in range(2):  # when two make it at once, one of them finds it the second time
            with suppress(DuplicateKeyError):
                state = await self._sessions.find_one_and_update(
                    where, pipeline, upsert=True, return_document=True
                )
                if state is not None:
                    return state
        message = f"The session {session.session_id} belongs to another user."
        raise InputError(message)

    async def _tend(
        self, session: Session, before: Mapping[str, Any] | None, state: Document
    ) -> None:
        """Put off the end of the session's messages, and remove those of an expired one.

        Neither changes what is read, so a failure is left to the next turn.
        """
        mine = self._mine(session)
        now = datetime.now(UTC)
        try:
            async with deadline():
                if before is None or before["last_active"] <= self._cutoff():
                    gone = {"seq": {"$lte": state["cleared_seq"]}}
                    await self._messages.delete_many(mine | gone)
                elif now - state["kept_at"] > self._slack:
                    stamp = {"$set": {"kept_at": now}}
                    await self._messages.update_many(mine, stamp)
                    await self._sessions.update_one({"_id": self._key(session)}, stamp)
        except HistoryError as error:
            _log.warning("session %s could not be tended: %s", session.key, error.message)

    async def _state(self, session: Session) -> Document | None:
        """Return the session's document as it is, expired or not."""
        return await self._sessions.find_one({"_id": self._key(session)})

    def _visible(
        self, documents: Sequence[Document], state: Mapping[str, Any] | None
    ) -> list[Document]:
        if state is None:
            return [document for document in documents if "seq" not in document]
        if state["last_active"] <= self._cutoff():
            return []
        cleared = state["cleared_seq"]
        return [item for item in documents if "seq" not in item or item["seq"] > cleared]

    def _asked(self, state: Mapping[str, Any] | None) -> Document:
        """Return the condition for the questions that are shown."""
        foreign: Document = {"seq": None, "History": {"$regex": '^{"type": "human"'}}
        if state is None:
            return foreign
        if state["last_active"] <= self._cutoff():
            return {"_id": {"$in": []}}
        return {"$or": [foreign, {"seq": {"$gt": state["cleared_seq"], "$mod": [2, 0]}}]}

    def _cutoff(self) -> datetime:
        return datetime.now(UTC) - self._life

    def _key(self, session: Session) -> str:
        if session.user_id == self._owner:
            return session.session_id
        return f"{session.user_id} {session.session_id}"

    def _mine(self, session: Session) -> Document:
        owned = session.user_id == self._owner
        user: object = {"$in": [session.user_id, None]} if owned else session.user_id
        return {"SessionId": self._key(session), "user_id": user}


def _wanted(
    entries: Sequence[Entry], state: Mapping[str, Any] | None, *, placed: bool
) -> Sequence[Entry]:
    """Leave out what was asked before the session was cleared."""
    if state is None:
        return entries
    at = state.get("cleared_at")
    cleared_at = None if at is None else moment(at)
    return [
        entry
        for entry in entries
        if not began_before(entry.turn, cleared_at)
        and (not placed or entry.seq > state["cleared_seq"])
    ]
