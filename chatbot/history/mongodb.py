"""The history in MongoDB, with its sessions as people see them."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from pymongo import DESCENDING

from chatbot.domain import (
    Match,
    Session,
    SessionCursor,
    SessionSummary,
    Turn,
    checked_id,
)
from chatbot.history import forgetting, session_documents
from chatbot.history.connection import TASK_SECONDS
from chatbot.history.documents import READ, Document, read_entries
from chatbot.history.entries import (
    Entry,
    checked_title,
    clean_text,
    clean_turn,
    microseconds,
    moment,
    next_seq,
)
from chatbot.history.indexes import BY_RATING
from chatbot.history.mongo_images import MongoImages
from chatbot.history.search_words import wanted as wanted_words
from chatbot.ratings import RatedTurn, RatingCursor, RatingFilter

BATCH = 100
SPARE = 50
EVERY_TURN = 2**31 - 1


class MongoChatHistory(MongoImages):
    """Keeps turns in the format of LangChain's class; lists, searches and renames sessions."""

    async def sessions(
        self, user_id: str, *, limit: int, before: SessionCursor | None = None
    ) -> Sequence[SessionSummary]:
        """See `SessionStore.sessions`."""
        checked_id(user_id, "user id", slash=True)
        where = session_documents.listed(user_id, since=self._store.cutoff)
        if before is not None:
            last = Session(session_id=before.session_id, user_id=user_id)
            where |= session_documents.behind(before, self._store.key(last))
        return await self._list(where, limit=limit)

    async def summary(self, session: Session) -> SessionSummary | None:
        """See `SessionStore.summary`."""
        where = session_documents.listed(session.user_id, since=self._store.cutoff)
        found = await self._list(where | {"_id": self._store.key(session)}, limit=1)
        return found[0] if found else None

    async def turns(self, session: Session) -> Sequence[Turn]:
        """See `SessionStore.turns`."""
        async with self._store.reached(TASK_SECONDS):
            await self._adopter.finish(session, seconds=TASK_SECONDS / 2)
        recent = await self.recent(session, limit=EVERY_TURN, seconds=TASK_SECONDS)
        return tuple(entry.turn for entry in recent.entries)

    async def search(self, user_id: str, text: str, *, limit: int) -> Sequence[Match]:
        """See `SessionStore.search`."""
        checked_id(user_id, "user id", slash=True)
        words = await asyncio.to_thread(wanted_words, clean_text(text))
        if not words or limit < 1:
            return ()
        store = self._store
        where = {"user_id": user_id, "words": {"$all": words}}
        # A few more than asked for: what is left of expired sessions is found as well.
        newest = (
            store.messages.find(where, ["SessionId", *READ])
            .sort("seq", DESCENDING)
            .limit(limit + SPARE)
        )
        async with store.reached(TASK_SECONDS):
            documents = await newest.to_list()
            keys = list({document["SessionId"] for document in documents})
            states = {
                state["_id"]: state
                async for state in store.sessions.find(
                    {"_id": {"$in": keys}, "user_id": user_id}
                )
            }
        matches = []
        for document in documents:
            state = states.get(document["SessionId"], {})
            for entry in read_entries(store.visible([document], state or None)):
                session_id, title = state["session_id"], state["title"]
                matches.append(Match(session_id=session_id, title=title, turn=entry.turn))
        return tuple(matches[:limit])

    async def rated(self, wanted: RatingFilter) -> Sequence[RatedTurn]:
        """See `SessionStore.rated`."""
        store, limit, before = self._store, wanted.limit, wanted.before
        where: Document = {"rated_at": {"$gt": 0, "$gte": microseconds(wanted.since)}}
        if wanted.thumb is not None:
            where["thumb"] = wanted.thumb
        found: list[RatedTurn] = []
        async with store.reached(TASK_SECONDS):
            while len(found) < limit:
                page = where if before is None else {"$and": [where, _rated_behind(before)]}
                newest = store.messages.find(page, ["SessionId", "user_id", "rated_at", *READ])
                documents = await newest.sort(BY_RATING).limit(limit + SPARE).to_list()
                found += await self._shown(documents)
                if len(documents) < limit + SPARE:
                    break
                last = documents[-1]
                before = RatingCursor(rated_at=moment(last["rated_at"]), turn_id=last["turn"])
        self._indexes.want()
        return tuple(found[: max(limit, 0)])

    async def _shown(self, documents: Sequence[Document]) -> list[RatedTurn]:
        """Return the rated turns that the documents hold, but those of sessions that ended."""
        keys = list({document["SessionId"] for document in documents})
        states = {
            state["_id"]: state
            async for state in self._store.sessions.find({"_id": {"$in": keys}})
        }
        shown = []
        for document in documents:
            state = states.get(document["SessionId"])
            for entry in read_entries(self._store.visible([document], state)):
                assert state is not None  # noqa: S101 - nothing is visible without
                session = Session(session_id=state["session_id"], user_id=state["user_id"])
                rated_at = moment(document["rated_at"])
                shown.append(
                    RatedTurn(
                        session=session,
                        title=state["title"],
                        turn=entry.turn,
                        rated_at=rated_at,
                    )
                )
        return shown

    async def rename(self, session: Session, title: str) -> bool:
        """See `SessionStore.rename`."""
        title = checked_title(title)
        store = self._store
        where = session_documents.listed(session.user_id, since=store.cutoff)
        async with store.reached():
            result = await store.sessions.update_one(
                where | {"_id": store.key(session)}, {"$set": {"title": title}}
            )
        return result.matched_count > 0

    async def restore(self, session: Session, title: str, turns: Sequence[Turn]) -> None:
        """See `SessionStore.restore`."""
        title, at = checked_title(title), datetime.now(UTC)
        await self.revive(session, at=at)
        async with self._store.reached():
            state = await self._store.state(session)
        last_seq = int((state or {}).get("last_seq", 0))
        entries = []
        for turn in turns:
            entries.append(Entry(turn=clean_turn(turn), seq=next_seq(turn, last_seq)))
            last_seq = entries[-1].seq
        for start in range(0, len(entries), BATCH):
            await self.append(session, entries[start : start + BATCH])
        await self.rename(session, title)

    async def revive(self, session: Session, *, at: datetime) -> None:
        """Take back that the session was cleared, so that turns from before may come again.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server could not be written.
        """
        async with self._store.reached():
            await self._store.change(session, session_documents.revived(session, at=at))

    async def forget_user(self, user_id: str) -> int:
        """See `SessionStore.forget_user`."""
        return await self.forget_all(user_id, at=datetime.now(UTC))

    async def forget_all(self, user_id: str, *, at: datetime) -> int:
        """See `forgetting.forget_all`."""
        checked_id(user_id, "user id", slash=True)
        return await forgetting.forget_all(self._store, user_id, at=at)

    async def _list(self, where: Document, *, limit: int) -> Sequence[SessionSummary]:
        if limit < 1:
            return ()
        store = self._store
        newest = store.sessions.find(where).sort([("last_active", DESCENDING), ("_id", 1)])
        async with store.reached(TASK_SECONDS):
            states = await newest.limit(limit).to_list()
            turns: dict[str, int] = {}
            if states:
                counts = await store.messages.aggregate(session_documents.counting(states))
                turns = {count["_id"]: count["turns"] async for count in counts}
        self._indexes.want()
        return tuple(
            session_documents.summary(state, turns.get(state["_id"], 0)) for state in states
        )


def _rated_behind(cursor: RatingCursor) -> Document:
    """Return the condition for the turns that a list shows behind this one."""
    at = microseconds(cursor.rated_at)
    same = {"rated_at": at, "turn": {"$gt": cursor.turn_id}}
    return {"$or": [{"rated_at": {"$lt": at}}, same]}
