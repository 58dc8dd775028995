"""Makes ours, in the background, what LangChain's class wrote in MongoDB."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from pymongo import ASCENDING, DESCENDING

from chatbot.domain import Session
from chatbot.errors import ChatbotError, InputError
from chatbot.history.adoption import adopted, foreign_entries, is_unanswered
from chatbot.history.connection import TASK_SECONDS
from chatbot.history.documents import Document
from chatbot.history.entries import Entry
from chatbot.history.mongo_store import MongoStore
from chatbot.history.session_documents import opened
from chatbot.tasks import end

BATCH = 1000
CLOSE_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Adopter:
    """Adopts a session once at a time. A turn waits a moment for it, but never for long."""

    def __init__(self, store: MongoStore) -> None:
        self._store = store
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, session: Session) -> asyncio.Task[None]:
        """Adopt the session in the background, unless that is being done."""
        key = self._store.key(session)
        if (task := self._tasks.get(key)) is None:
            task = asyncio.create_task(self._try(session), name=f"adoption of {key}")
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def is_done(self, session: Session, *, seconds: float) -> bool:
        """Adopt the session, and tell whether that took no longer than this."""
        done, _ = await asyncio.wait({self.begin(session)}, timeout=seconds)
        return bool(done)

    async def newest(
        self, session: Session, state: Document | None, *, limit: int
    ) -> Sequence[Entry]:
        """Return the newest turns that are not adopted yet, oldest first."""
        foreign = self._store.mine(session) | {"seq": None}
        found = self._store.messages.find(foreign).sort("_id", DESCENDING).limit(2 * limit)
        documents = (await found.to_list())[::-1]
        return foreign_entries(documents, last_seq=(state or {}).get("last_seq", 0))

    async def adopt_all(self) -> None:
        """Adopt all there is, session by session.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: Not all of it could be written; the next time goes on.
        """
        pipeline: list[Document] = [
            {"$match": {"seq": None, "user_id": None}},
            {"$group": {"_id": "$SessionId"}},
        ]
        async with self._store.reached(TASK_SECONDS):
            found = await (await self._store.messages.aggregate(pipeline)).to_list()
        for group in found:
            with suppress(InputError):  # an id of a form that nobody can ask for
                await self._adopt(Session(session_id=group["_id"], user_id=self._store.owner))

    async def close(self) -> None:
        """End what goes on; another time goes on with it."""
        tasks = tuple(self._tasks.values())
        if tasks:  # the driver leaves a connection open whose opening is cancelled
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        await end(*tasks)

    async def _try(self, session: Session) -> None:
        try:
            await self._adopt(session)
        except ChatbotError as error:
            _log.warning("session %s could not be adopted: %s", session.key, error.message)

    async def _adopt(self, session: Session) -> None:
        """Make the session's messages ours, oldest first. Its life begins now."""
        store, place, first = self._store, 0, None
        foreign = store.mine(session) | {"seq": None}
        while True:
            async with store.reached(TASK_SECONDS):
                oldest = store.messages.find(foreign).sort("_id", ASCENDING).limit(BATCH)
                documents = await oldest.to_list()
                if not documents or documents[0]["_id"] == first:
                    return
                first = documents[0]["_id"]
                state = await store.state(session) or {}
                adopt = partial(
                    adopted,
                    documents,
                    session.user_id,
                    head=await self._unanswered(session, documents),
                    last_seq=state.get("last_seq", 0),
                    behind=place,
                    is_more=len(documents) == BATCH,
                    now=(now := datetime.now(UTC)),
                )
                entries, writes, place = await asyncio.to_thread(adopt)
                if entries:
                    change = opened(session, entries, placed=True, now=now, life=store.life)
                    await store.change(session, change)
                await store.messages.bulk_write(writes)

    async def _unanswered(
        self, session: Session, documents: Sequence[Document]
    ) -> Document | None:
        """Return the last question before these documents, if its answer is among them."""
        if not documents:
            return None
        earlier = {"seq": {"$ne": None}, "_id": {"$lt": documents[0]["_id"]}}
        last = await self._store.messages.find_one(
            self._store.mine(session) | earlier, sort=[("seq", DESCENDING)]
        )
        return last if last is not None and is_unanswered(last) else None
