"""Makes ours, in the background, what LangChain's class wrote in MongoDB."""

import asyncio
import logging
import uuid
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import partial

from pymongo import ASCENDING, DESCENDING

from chatbot.domain import Session
from chatbot.errors import ChatbotError, HistoryError, InputError
from chatbot.history.adoption import adopted
from chatbot.history.connection import TASK_SECONDS
from chatbot.history.documents import Document
from chatbot.history.mongo_store import MongoStore
from chatbot.history.session_documents import adopting, opened
from chatbot.tasks import end

BATCH = 200
CLOSE_SECONDS = 1.0
PAUSE_SECONDS = 0.1
HOLD = timedelta(seconds=2 * TASK_SECONDS)  # longer than what is done in it may take
MOST = 2000  # messages that are shown before they are adopted

_log = logging.getLogger(__name__)


class Adopter:
    """Adopts a session once at a time, also across processes: two would mix the places up.

    A turn waits a moment for it, but never for long.
    """

    def __init__(self, store: MongoStore) -> None:
        self._store = store
        self._name = uuid.uuid4().hex
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, session: Session) -> asyncio.Task[None]:
        """Adopt the session in the background, unless that is being done."""
        key = self._store.key(session)
        if (task := self._tasks.get(key)) is None:
            # In a context of its own: that of a turn has the turn's deadline.
            task = asyncio.create_task(
                self._try(session), name=f"adoption of {key}", context=Context()
            )
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def is_done(self, session: Session, *, seconds: float) -> bool:
        """Adopt the session, and tell whether that took no longer than this."""
        done, _ = await asyncio.wait({self.begin(session)}, timeout=seconds)
        return bool(done)

    async def finish(self, session: Session, *, seconds: float) -> None:
        """Return when all of the session is adopted.

        Raises:
            HistoryError: It takes longer than this.
        """
        if await self.is_wanted(session):
            await self.is_done(session, seconds=seconds)
            if await self.is_wanted(session):
                message = (
                    f"The conversation {session.session_id} is long and was written by another "
                    "program: it is still being taken over. Please try again in a moment."
                )
                raise HistoryError(message)

    async def is_wanted(self, session: Session) -> bool:
        """Tell whether there is something in the session that was not adopted just now."""
        store = self._store
        if session.user_id != store.owner:
            return False
        is_adopted_now = store.key(session) in self._tasks
        found = await store.messages.find_one(_foreign(store, session), {"_id": 1})
        return is_adopted_now or found is not None

    async def newest(self, session: Session, *, limit: int) -> Sequence[Document]:
        """Return the newest messages of LangChain's class, adopted or not, oldest first."""
        theirs = self._store.mine(session) | {"_id": {"$type": "objectId"}}
        newest = self._store.messages.find(theirs).sort("_id", DESCENDING)
        return (await newest.limit(min(4 * limit + 20, MOST)).to_list())[::-1]

    async def adopt_all(self) -> None:
        """Adopt all there is, session by session.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server could not be asked for it.
        """
        pipeline: list[Document] = [
            {"$match": {"seq": None, "user_id": None}},
            {"$group": {"_id": "$SessionId"}},
        ]
        async with self._store.reached(TASK_SECONDS):
            found = await (await self._store.messages.aggregate(pipeline)).to_list()
        for group in found:
            with suppress(InputError):  # an id of a form that nobody can ask for
                session = Session(session_id=group["_id"], user_id=self._store.owner)
                await asyncio.wait({self.begin(session)})

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
        store, first = self._store, None
        while True:
            async with store.reached(TASK_SECONDS):
                state = await store.change(session, adopting(self._name, HOLD))
                if state["adopter"] != self._name:  # another process does it
                    await asyncio.sleep(PAUSE_SECONDS)
                    if await store.messages.find_one(_foreign(store, session)) is None:
                        return
                    continue
                oldest = store.messages.find(_foreign(store, session)).sort("_id", ASCENDING)
                documents = await oldest.limit(BATCH).to_list()
                if not documents or documents[0]["_id"] == first:
                    await store.change(session, adopting(self._name, timedelta()))
                    return
                first = documents[0]["_id"]
                last = await self._last_before(session, first)
                adopt = partial(
                    adopted,
                    documents,
                    session.user_id,
                    last=last,
                    last_seq=state.get("last_seq", 0),
                    is_more=len(documents) == BATCH,
                    now=(now := datetime.now(UTC)),
                )
                entries, writes = await asyncio.to_thread(adopt)
                if entries:
                    change = opened(session, entries, placed=True, now=now, life=store.life)
                    await store.change(session, change)
                await store.messages.bulk_write(writes)

    async def _last_before(self, session: Session, number: object) -> Document | None:
        """Return the last message that was adopted from before the one with this id."""
        earlier = {"seq": {"$type": "number"}, "_id": {"$lt": number}}
        return await self._store.messages.find_one(
            self._store.mine(session) | earlier, sort=[("seq", DESCENDING)]
        )


def _foreign(store: MongoStore, session: Session) -> Document:
    """Return the condition for what is not adopted yet."""
    return store.mine(session) | {"seq": None}
