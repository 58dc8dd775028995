"""The turns of sessions in MongoDB: a document per session, and one per message."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pymongo import DESCENDING, ReadPreference, WriteConcern

from chatbot.domain import ANONYMOUS, LoadedHistory, Session, Turn, checked_id
from chatbot.errors import ChatbotError, HistoryError
from chatbot.history import session_documents
from chatbot.history.adoption import foreign_ids, is_foreign
from chatbot.history.connection import TASK_SECONDS, TURN_SECONDS, Client, deadline
from chatbot.history.documents import READ, Document, question_id, read_entries
from chatbot.history.entries import (
    Entry,
    Recent,
    began_before,
    clean_turn,
    microseconds,
    moment,
)
from chatbot.history.indexes import Indexes
from chatbot.history.mongo_store import MongoStore
from chatbot.history.turn_writes import session_writes

QUESTIONS = {"$not": {"$mod": [2, 1]}}  # the places of questions, and documents without one
NEWEST_FIRST = [("seq", DESCENDING), ("_id", DESCENDING)]

_log = logging.getLogger(__name__)


class MongoTurns:
    """Keeps turns in the format of LangChain's class, which can read them in order.

    The caller owns `client`. A session goes as a whole, `ttl_days` after its last activity.
    What LangChain's class wrote, without a user, belongs to `owner` and is adopted.
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
        # Whatever MONGODB_URI says: what was kept is there, and is read where it was written.
        kept = client.get_database(
            database,
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern("majority", j=True),
        )
        self._store = MongoStore(
            sessions=kept[f"{collection}_sessions"],
            messages=kept[collection],
            life=timedelta(days=ttl_days),
            owner=owner,
        )
        self._indexes = Indexes(self._store)

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
                await self._store.sessions.find_one({"_id": ""}, {"_id": 1})
        except ChatbotError as error:
            return error.message
        return ""

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        recent = await self.recent(session, limit=limit)
        return LoadedHistory(turns=tuple(entry.turn for entry in recent.entries))

    async def recent(
        self, session: Session, *, limit: int, seconds: float = TURN_SECONDS
    ) -> Recent:
        """Return the newest turns with their places, oldest first.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server could not be read.
        """
        state, documents = await self._newest(session, limit, seconds)
        self._indexes.want()
        if any(is_foreign(document) for document in documents):
            await self._store.adopt(session)
            state, documents = await self._newest(session, limit, seconds)
        entries = read_entries(self._store.visible(documents, state)[::-1])
        return Recent(
            entries=tuple(entries[-limit:] if limit else ()),
            last_seq=int(state["last_seq"]) if state else 0,
            title=state["title"] if state else "",
        )

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        checked_id(turn_id, "turn id")
        async with deadline():
            state, documents = await asyncio.gather(
                self._store.state(session), self._named(session, [turn_id])
            )
        entries = read_entries(self._store.visible(documents, state))
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
        store, mine = self._store, self._store.mine(session)
        async with deadline(TASK_SECONDS):
            before = await store.state(session)
            turns = await store.messages.count_documents(mine | self._asked(before))
            state = await store.change(session, session_documents.cleared(session, at=at))
            places = [{"seq": {"$lte": state["cleared_seq"]}}, {"seq": None}]
            await store.messages.delete_many(mine | {"$or": places})
        return turns

    async def _newest(
        self, session: Session, limit: int, seconds: float
    ) -> tuple[Document | None, list[Document]]:
        asked = self._store.mine(session) | {"seq": QUESTIONS}
        newest = self._store.messages.find(asked, READ)
        newest = newest.sort(NEWEST_FIRST).limit(max(limit, 1))
        async with deadline(seconds):
            return await asyncio.gather(self._store.state(session), newest.to_list())

    async def _named(
        self, session: Session, turn_ids: Sequence[str], *, foreign: bool = False
    ) -> list[Document]:
        """Return the documents of these turns' questions, and one that is foreign if wanted."""
        key = self._store.key(session)
        numbers: list[object] = [question_id(key, turn_id) for turn_id in turn_ids]
        for turn_id in turn_ids:
            numbers += foreign_ids(turn_id)
        named: Document = {"_id": {"$in": numbers}}
        if foreign:
            named = {"$or": [named, {"seq": None}]}
        found = self._store.messages.find(self._store.mine(session) | named, READ)
        return await found.limit(len(numbers) + 1).to_list()

    async def _append(
        self, session: Session, entries: Sequence[Entry], *, placed: bool
    ) -> None:
        store = self._store
        # As it comes back from the server, which keeps milliseconds.
        now = moment(microseconds(datetime.now(UTC)) // 1000 * 1000)
        change = session_documents.opened(
            session, entries, placed=placed, now=now, life=store.life
        )
        turn_ids = [entry.turn.id for entry in entries]
        async with deadline():
            state, documents = await asyncio.gather(
                store.change(session, change), self._named(session, turn_ids, foreign=True)
            )
            foreign = any(map(is_foreign, documents))
            if foreign:  # there may be many, and the named ones not among the first
                documents = await self._named(session, turn_ids)
            is_new = state.get("created_at") == now
            if not placed:
                entries = [replace(entry, seq=int(state["last_seq"])) for entry in entries]
            entries = _wanted(entries, state)
            if is_new:
                gone = {"seq": {"$lte": state["cleared_seq"]}}
                await store.messages.delete_many(store.mine(session) | gone)
                documents = store.visible(documents, state)
            writes = await asyncio.to_thread(
                session_writes, store.key(session), session.user_id, entries, documents, now
            )
            if writes:
                await store.messages.bulk_write(writes)
        self._indexes.want()
        await self._tend(session, state, foreign=foreign)

    async def _tend(self, session: Session, state: Document, *, foreign: bool) -> None:
        """Put off the end of the session's messages, and adopt foreign ones.

        The turn is kept already, so a failure is left to the next one.
        """
        store, now = self._store, datetime.now(UTC)
        try:
            if foreign:
                await store.adopt(session)
            if now - state["kept_at"] > store.slack:
                stamp = {"$set": {"kept_at": now}}
                async with deadline():
                    await store.messages.update_many(store.mine(session), stamp)
                    await store.sessions.update_one({"_id": store.key(session)}, stamp)
        except HistoryError as error:
            _log.warning("session %s could not be tended: %s", session.key, error.message)

    def _asked(self, state: Document | None) -> Document:
        """Return the condition for the questions that are shown."""
        foreign: Document = {"seq": None, "History": {"$regex": '^{"type": "human"'}}
        if state is None or not self._store.is_live(state):
            return foreign
        return {"$or": [foreign, {"seq": {"$gt": state["cleared_seq"], "$mod": [2, 0]}}]}


def _wanted(entries: Sequence[Entry], state: Document) -> Sequence[Entry]:
    """Leave out what was asked before the session was cleared."""
    at = state.get("cleared_at")
    cleared_at = None if at is None else moment(at)
    return [
        entry
        for entry in entries
        if entry.seq > state["cleared_seq"] and not began_before(entry.turn, cleared_at)
    ]
