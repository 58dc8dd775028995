"""The collections in MongoDB, and what in them belongs to a session."""

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pymongo import UpdateOne
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import BulkWriteError, DuplicateKeyError

from chatbot.domain import EPOCH, Session
from chatbot.errors import InputError
from chatbot.history.adoption import foreign_ids, is_foreign
from chatbot.history.connection import TURN_SECONDS, deadline
from chatbot.history.documents import READ, Document, question_id
from chatbot.history.entries import even, microseconds
from chatbot.history.schema import Schema

Collection = AsyncCollection[dict[str, Any]]
DUPLICATE_KEY = 11000
Written = TypeVar("Written")


def stored_key(session: Session, owner: str) -> str:
    """Return the key of the session. The owner's is the plain session id, as LangChain's is."""
    if session.user_id == owner:
        return session.session_id
    return f"{session.user_id} {session.session_id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MongoStore:
    """The collections of sessions, messages and images, and how long a session lives.

    Messages without a user were written by LangChain's class and belong to `owner`.
    """

    sessions: Collection
    messages: Collection
    images: Collection
    schema: Schema
    life: timedelta
    owner: str

    @property
    def slack(self) -> timedelta:
        """How long messages may go without a new stamp, so that they outlive their session."""
        return min(timedelta(days=1), self.life)

    @property
    def cutoff(self) -> datetime:
        """The last activity of a session that expires now."""
        return datetime.now(UTC) - self.life

    def key(self, session: Session) -> str:
        """Return the stored key."""
        return stored_key(session, self.owner)

    def mine(self, session: Session) -> Document:
        """Return the condition for the session's messages."""
        owned = session.user_id == self.owner
        user: object = {"$in": [session.user_id, None]} if owned else session.user_id
        return {"SessionId": self.key(session), "user_id": user}

    @asynccontextmanager
    async def reached(self, seconds: float = TURN_SECONDS) -> AsyncIterator[None]:
        """Bound the calls in the block, as `deadline` does, once the schema is known as ours.

        Raises:
            ConfigurationError: The server refuses the user, or has documents of a later kind.
            HistoryError: The server did not do it.
        """
        async with deadline(seconds):
            await self.schema.check()
            yield

    async def state(self, session: Session) -> Document | None:
        """Return the session's document, expired or not."""
        where = {"_id": self.key(session), "user_id": session.user_id}
        return await self.sessions.find_one(where)

    def is_live(self, state: Document | None) -> bool:
        """Tell whether there is such a session and it has not expired."""
        return state is not None and state.get("last_active", EPOCH) > self.cutoff

    def cleared_seq(self, state: Document) -> int:
        """Return the last place that is not shown. Without a turn yet, all that is expired."""
        return int(state.get("cleared_seq", even(microseconds(self.cutoff))))

    def visible(self, documents: Sequence[Document], state: Document | None) -> list[Document]:
        """Return those of the documents that are shown."""
        if state is None or not self.is_live(state):
            return []
        cleared = self.cleared_seq(state)
        return [item for item in documents if not is_foreign(item) and item["seq"] > cleared]

    async def named(
        self, session: Session, turn_ids: Sequence[str], *, foreign: bool = False
    ) -> list[Document]:
        """Return the documents of these turns' questions, and one that is foreign if wanted."""
        numbers: list[object] = [question_id(self.key(session), each) for each in turn_ids]
        for turn_id in turn_ids:
            numbers += foreign_ids(turn_id)
        named: Document = {"_id": {"$in": numbers}}
        if foreign:
            named = {"$or": [named, {"seq": None}]}
        found = self.messages.find(self.mine(session) | named, READ)
        return await found.limit(len(numbers) + 1).to_list()

    async def change(self, session: Session, pipeline: list[Document]) -> Document:
        """Change the session's document, made if need be, and return it.

        Raises:
            InputError: The key belongs to another user.
        """
        where = {"_id": self.key(session), "user_id": session.user_id}
        try:
            state = await self.insert_once(
                lambda: self.sessions.find_one_and_update(
                    where, pipeline, upsert=True, return_document=True
                )
            )
        except DuplicateKeyError:
            state = None
        if state is None:
            message = f"The session {session.session_id} belongs to another user."
            raise InputError(message)
        return state

    async def write(self, writes: Sequence[UpdateOne]) -> None:
        """Write to the messages: what another process inserts meanwhile is found then.

        Raises:
            DuplicateKeyError: What is there already is somebody else's.
        """

        async def once() -> None:
            try:
                await self.messages.bulk_write(writes, ordered=False)
            except BulkWriteError as error:
                codes = {each["code"] for each in error.details["writeErrors"]}
                if codes != {DUPLICATE_KEY}:
                    raise
                message = "a message is there already"
                raise DuplicateKeyError(message, DUPLICATE_KEY) from None

        if writes:
            await self.insert_once(once)

    @staticmethod
    async def insert_once(write: Callable[[], Coroutine[Any, Any, Written]]) -> Written:
        """Do a write that may insert: when two insert at once, one finds it the second time.

        Raises:
            DuplicateKeyError: What is there already is somebody else's.
        """
        try:
            return await write()
        except DuplicateKeyError:
            return await write()
