"""What is made ready in MongoDB when the history is first used: indexes, older messages."""

import asyncio
import logging
import math
from contextvars import Context
from datetime import timedelta

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import OperationFailure

from chatbot.errors import ChatbotError
from chatbot.history.adopting import Adopter
from chatbot.history.connection import INDEX_SECONDS, deadline
from chatbot.history.mongo_store import Collection, MongoStore

BY_PLACE = [
    ("SessionId", ASCENDING),
    ("seq", ASCENDING),
    ("_id", ASCENDING),
    ("user_id", ASCENDING),
]
OLD_BY_PLACE = "SessionId_1_seq_1__id_1"  # as earlier versions of this program made it
BY_USER = [("user_id", ASCENDING), ("last_active", DESCENDING)]
IMAGES_BY_USER = [("user_id", ASCENDING), ("name", ASCENDING)]
BY_RATING = [("rated_at", DESCENDING), ("turn", ASCENDING)]
RATED = {"rated_at": {"$gt": 0}}  # few are
BY_WORD = [("user_id", ASCENDING), ("words", ASCENDING), ("seq", DESCENDING)]
OPTIONS_CONFLICT = 85
RETRY_SECONDS = 60.0
CLOSE_SECONDS = 1.0
LONGEST_EXPIRY = 2**31 - 1  # what MongoDB takes, in seconds

_log = logging.getLogger(__name__)


class Indexes:
    """The indexes of a store. A turn never waits for them and never fails for them."""

    def __init__(self, store: MongoStore, adopter: Adopter) -> None:
        self._store = store
        self._adopter = adopter
        self._task: asyncio.Task[None] | None = None
        self._made = False
        self._next_try = 0.0

    def want(self) -> None:
        """Start to make them, unless they are made, being made, or were just refused."""
        now = asyncio.get_running_loop().time()
        if not self._made and self._task is None and now >= self._next_try:
            self._next_try = now + RETRY_SECONDS
            # In a context of its own: that of a turn may have the turn's deadline.
            self._task = asyncio.create_task(
                self._try(), name="history indexes", context=Context()
            )

    async def make(self) -> None:
        """Make them, or change those that have other options.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: The server could not make them.
        """
        store = self._store
        async with deadline(INDEX_SECONDS):
            await store.sessions.create_index(BY_USER)
            await store.sessions.create_index("version")
            await _expire(store.sessions, "last_active", store.life)
            await _expire(store.messages, "kept_at", store.life + 2 * store.slack)
            await _expire(store.images, "kept_at", store.life + 2 * store.slack)
            await store.images.create_index("SessionId")
            await store.images.create_index(IMAGES_BY_USER)
            await _order(store.messages)
            await store.messages.create_index(BY_WORD)
            await store.messages.create_index(BY_RATING, partialFilterExpression=RATED)
        self._made = True

    async def close(self) -> None:
        """End the work that is under way."""
        task = self._task
        # Mostly it is about to end, and the driver may swallow a cancellation.
        while task is not None and not task.done():
            await asyncio.wait({task}, timeout=CLOSE_SECONDS)
            task.cancel()

    async def _try(self) -> None:
        try:
            await self.make()
            await self._store.schema.migrate()
            await self._adopter.adopt_all()
        except ChatbotError as error:
            _log.warning("MongoDB could not be made ready: %s", error.message)
        finally:
            self._task = None


async def _expire(collection: Collection, name: str, life: timedelta) -> None:
    seconds = min(max(1, math.ceil(life.total_seconds())), LONGEST_EXPIRY)
    try:
        await collection.create_index(name, expireAfterSeconds=seconds)
    except OperationFailure as error:
        if error.code != OPTIONS_CONFLICT:
            raise
        await collection.database.command(
            "collMod",
            collection.name,
            index={"keyPattern": {name: ASCENDING}, "expireAfterSeconds": seconds},
        )


async def _order(messages: Collection) -> None:
    # LangChain's class reads without a sort, and of two indexes that serve it the server takes
    # the older one. Its own holds no order, is made again by it, and so comes to stand behind.
    name = await messages.create_index(BY_PLACE)
    names = list(await messages.index_information())
    for old in ("SessionId_1", OLD_BY_PLACE):
        if old in names and names.index(old) < names.index(name):
            await messages.drop_index(old)
