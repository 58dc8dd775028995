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
from chatbot.history.documents import Document, question_id, read_entries
from chatbot.history.entries import (
    Entry,
    Recent,
    began_before,
    clean_turn,
    moment,
    title_of,
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
        newest = self._store.messages.find(self._store.mine(session) | {"seq": QUESTIONS})
        newest = newest.sort(NEWEST_FIRST).limit(max(limit, 1))
        async with deadline(seconds):
            return await asyncio.gather(self._store.state(session), newest.to_list())

    async def _named(self, session: Session, turn_ids: Sequence[str]) -> list[Document]:
        """Return the documents of the questions of these turns."""
        key = self._store.key(session)
        numbers: list[object] = [question_id(key, turn_id) for turn_id in turn_ids]
        for turn_id in turn_ids:
            numbers += foreign_ids(turn_id)
        where = self._store.mine(session) | {"_id": {"$in": numbers}}
        return await self._store.messages.find(where).to_list()

    async def _append(
        self, session: Session, entries: Sequence[Entry], *, placed: bool
    ) -> None:
        store, key = self._store, self._store.key(session)
        async with deadline():
            before, documents, foreign = await asyncio.gather(
                store.state(session),
                self._named(session, [entry.turn.id for entry in entries]),
                store.messages.find_one(store.mine(session) | {"seq": None}, {"_id": 1}),
            )
            entries = _wanted(entries, before, placed=placed)
            if not entries:
                return
            now = datetime.now(UTC)
            change = session_documents.opened(
                session,
                title=title_of(entries[0].turn.question),
                places=(entries[0].seq, entries[-1].seq) if placed else None,
                started_at=entries[0].turn.started_at,
                now=now,
                life=store.life,
            )
            state = await store.change(session, change)
            if not placed:
                entries = [replace(entries[0], seq=int(state["last_seq"]))]
            writes = await asyncio.to_thread(
                session_writes, key, session.user_id, entries, documents, now
            )
            if writes:
                await store.messages.bulk_write(writes)
        self._indexes.want()
        await self._tend(session, before, state, foreign=foreign is not None)

    async def _tend(
        self, session: Session, before: Document | None, state: Document, *, foreign: bool
    ) -> None:
        """Put off the end of the session's messages, remove old ones, adopt foreign ones.

        The turn is kept already, so a failure is left to the next one.
        """
        store, mine = self._store, self._store.mine(session)
        now = datetime.now(UTC)
        try:
            if foreign:
                await store.adopt(session)
            async with deadline():
                if not store.is_live(before):
                    gone = {"seq": {"$lte": state["cleared_seq"]}}
                    await store.messages.delete_many(mine | gone)
                elif now - state["kept_at"] > store.slack:
                    stamp = {"$set": {"kept_at": now}}
                    await store.messages.update_many(mine, stamp)
                    await store.sessions.update_one({"_id": store.key(session)}, stamp)
        except HistoryError as error:
            _log.warning("session %s could not be tended: %s", session.key, error.message)

    def _asked(self, state: Document | None) -> Document:
        """Return the condition for the questions that are shown."""
        foreign: Document = {"seq": None, "History": {"$regex": '^{"type": "human"'}}
        if state is None or not self._store.is_live(state):
            return foreign
        return {"$or": [foreign, {"seq": {"$gt": state["cleared_seq"], "$mod": [2, 0]}}]}


def _wanted(
    entries: Sequence[Entry], state: Document | None, *, placed: bool
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
