"""The turns of sessions in MongoDB: a document per session, and one per message."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pymongo import DESCENDING, ReadPreference, WriteConcern
from pymongo.errors import OperationFailure

from chatbot.domain import ANONYMOUS, LoadedHistory, Session, Turn, checked_id
from chatbot.errors import ChatbotError
from chatbot.history import forgetting
from chatbot.history.adopting import Adopter
from chatbot.history.adoption import foreign_entries, is_theirs
from chatbot.history.appending import append
from chatbot.history.connection import TURN_SECONDS, Client, deadline
from chatbot.history.documents import READ, Document, read_entries
from chatbot.history.entries import (
    Entry,
    Recent,
    clean_turn,
)
from chatbot.history.indexes import Indexes
from chatbot.history.mongo_store import MongoStore
from chatbot.history.schema import Schema

PLAN_KILLED = 175  # an index that the query went by was dropped meanwhile
QUESTIONS = {"$type": "number", "$mod": [2, 0]}  # their places are even
ADOPTION_SHARE = 0.3  # of the time there is to load a session
NEWEST_FIRST = [("seq", DESCENDING), ("_id", DESCENDING)]

Found = tuple[Document | None, Sequence[Document], Sequence[Document]]

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
        sessions, messages = kept[f"{collection}_sessions"], kept[collection]
        self._store = MongoStore(
            sessions=sessions,
            messages=messages,
            images=kept[f"{collection}_images"],
            schema=Schema(sessions, messages),
            life=timedelta(days=ttl_days),
            owner=owner,
        )
        self._adopter = Adopter(self._store)
        self._indexes = Indexes(self._store, self._adopter)

    async def close(self) -> None:
        """End what goes on in the background."""
        await self._indexes.close()
        await self._adopter.close()

    async def ping(self) -> None:
        """Return when the server has answered.

        Raises:
            ConfigurationError: The server refuses the user, or has documents of a later kind.
            HistoryError: The server did not answer.
        """
        async with self._store.reached():
            await self._client.admin.command("ping")

    async def check(self) -> str:
        """See `ChatHistory.check`."""
        try:
            async with deadline():
                await Schema(self._store.sessions, self._store.messages).check()
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
        try:
            async with self._store.reached(seconds):
                found = await self._look(session, limit, seconds)
        finally:  # what takes too long may lack its index
            self._indexes.want()
        state, documents, waiting = found
        if waiting:
            documents = [each for each in documents if not is_theirs(each)]
        entries = read_entries(self._store.visible(documents, state)[::-1])
        last_seq = int((state or {}).get("last_seq", 0))
        entries += foreign_entries(waiting, last_seq=last_seq)
        entries.sort(key=lambda entry: entry.seq)
        return Recent(
            entries=tuple(entries[-limit:] if limit else ()),
            last_seq=last_seq,
            title=(state or {}).get("title", ""),
        )

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        checked_id(turn_id, "turn id")
        async with self._store.reached():
            state, documents = await asyncio.gather(
                self._store.state(session), self._store.named(session, [turn_id])
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
        """See `forgetting.forget`."""
        return await forgetting.forget(self._store, session, at=at)

    async def _look(self, session: Session, limit: int, seconds: float) -> Found:
        """Return what there is now, and theirs if these are not adopted in good time."""
        try:
            return await self._look_once(session, limit, seconds)
        except OperationFailure as error:
            if error.code != PLAN_KILLED:
                raise
            return await self._look_once(session, limit, seconds)

    async def _look_once(self, session: Session, limit: int, seconds: float) -> Found:
        adopter = self._adopter
        waiting: Sequence[Document] = ()
        # Asked first: what another process adopts from here on is found among the newest.
        if await adopter.is_wanted(session) and not await adopter.is_done(
            session, seconds=seconds * ADOPTION_SHARE
        ):
            waiting = await adopter.newest(session, limit=limit)
        return *await self._newest(session, limit), waiting

    async def _newest(
        self, session: Session, limit: int
    ) -> tuple[Document | None, list[Document]]:
        asked = self._store.mine(session) | {"seq": QUESTIONS}
        newest = self._store.messages.find(asked, READ)
        newest = newest.sort(NEWEST_FIRST).limit(max(limit, 1))
        return await asyncio.gather(self._store.state(session), newest.to_list())

    async def _append(
        self, session: Session, entries: Sequence[Entry], *, placed: bool
    ) -> None:
        if await append(self._store, session, entries, placed=placed):
            self._adopter.begin(session)
        self._indexes.want()
