"""The stores of the history, opened for a test."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from chatbot.domain import (
    LoadedHistory,
    Match,
    Session,
    SessionCursor,
    SessionSummary,
    Turn,
    TurnStatus,
)
from chatbot.errors import HistoryError
from chatbot.history.connection import Client, open_client
from chatbot.history.entries import Entry, Recent, microseconds
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.history.resilient import ResilientChatHistory
from chatbot.images.image import Image
from chatbot.ports import SessionStore
from chatbot.ratings import RatedTurn, RatingFilter
from tests.servers.mongod import Mongod

Opener = Callable[[Mongod, Path], AbstractAsyncContextManager[SessionStore]]
CONTRACT = "contract"
START = datetime(2026, 5, 4, 9, 30, 15, 123457, tzinfo=UTC)


def turn(
    name: str,
    *,
    answer: str | None = None,
    status: TurnStatus = "complete",
    second: float = 0,
    started_at: datetime | None = None,
    **record: Any,
) -> Turn:
    return Turn(
        id=name,
        question=f"question {name}",
        answer=f"answer {name}" if answer is None else answer,
        started_at=started_at or START + timedelta(seconds=second),
        status=status,
        record=record,
    )


@asynccontextmanager
async def mongo_history(
    mongod: Mongod, database: str, **options: Any
) -> AsyncIterator[MongoChatHistory]:
    """Open the store in MongoDB."""
    chosen: dict[str, Any] = {"collection": "chat_history", "ttl_days": 30.0} | options
    async with open_client(mongod.uri) as client:
        history = MongoChatHistory(client, database=database, **chosen)
        try:
            yield history
        finally:
            await history.close()


@asynccontextmanager
async def resilient_history(
    mongod: Mongod,
    path: Path | str,
    database: str,
    **options: Any,
) -> AsyncIterator[ResilientChatHistory]:
    """Open the store in MongoDB with a local file behind it."""
    async with mongo_history(mongod, database, **options) as primary:
        local = LocalChatHistory(path, ttl_days=options.get("ttl_days", 30.0))
        async with ResilientChatHistory(primary, local) as history:
            yield history


@asynccontextmanager
async def in_mongodb(mongod: Mongod, _folder: Path) -> AsyncIterator[SessionStore]:
    await empty(mongod, CONTRACT)
    async with mongo_history(mongod, CONTRACT) as history:
        yield history


@asynccontextmanager
async def in_file(_mongod: Mongod, folder: Path) -> AsyncIterator[SessionStore]:
    async with LocalChatHistory(folder / "data" / "history.sqlite3") as history:
        yield history


@asynccontextmanager
async def in_memory(_mongod: Mongod, _folder: Path) -> AsyncIterator[SessionStore]:
    async with LocalChatHistory(":memory:") as history:
        yield history


@asynccontextmanager
async def in_both(mongod: Mongod, folder: Path) -> AsyncIterator[SessionStore]:
    await empty(mongod, CONTRACT)
    async with resilient_history(mongod, folder / "history.sqlite3", CONTRACT) as history:
        yield history


async def active_at(history: SessionStore, name: str, moment: datetime) -> None:
    """Let alice's session have been active last at that moment."""
    if isinstance(history, ResilientChatHistory):
        for store in (history._primary, history._local):  # noqa: SLF001 - it is in both
            await active_at(store, name, moment)
    elif isinstance(history, LocalChatHistory):
        change = "UPDATE sessions SET last_active = ? WHERE key = ?"
        values = (microseconds(moment), f"alice {name}")
        await history.file.write(lambda connection: connection.execute(change, values).rowcount)
    elif isinstance(history, MongoChatHistory):
        await history._store.sessions.update_one(  # noqa: SLF001 - no time has to pass
            {"_id": f"alice {name}"}, {"$set": {"last_active": moment}}
        )


def looking_into(mongod: Mongod) -> Client:
    """Return a client for what a test itself does: it has the time that it takes.

    What it does outlives a server that is killed at once.
    """
    return AsyncMongoClient(mongod.uri, journal=True, tz_aware=True)


async def empty(mongod: Mongod, database: str) -> None:
    """Remove what other tests left; quicker than to make a database for each."""
    async with looking_into(mongod) as client:
        for name in await client[database].list_collection_names():
            await client[database][name].delete_many({})


class Away:
    """A primary store that is never there."""

    async def close(self) -> None:
        pass

    async def check(self) -> str:
        return self._error.message

    async def ping(self) -> None:
        raise self._error

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        raise self._error

    async def recent(self, session: Session, *, limit: int) -> Recent:
        raise self._error

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        raise self._error

    async def save(self, session: Session, turn: Turn) -> str:
        raise self._error

    async def append(self, session: Session, entries: Sequence[Entry]) -> None:
        raise self._error

    async def clear(self, session: Session) -> int:
        raise self._error

    async def forget(self, session: Session, *, at: datetime) -> int:
        raise self._error

    async def forget_all(self, user_id: str, *, at: datetime) -> int:
        raise self._error

    async def forget_user(self, user_id: str) -> int:
        raise self._error

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        raise self._error

    async def find_image(self, user_id: str, name: str) -> Image | None:
        raise self._error

    async def revive(self, session: Session, *, at: datetime) -> None:
        raise self._error

    async def sessions(
        self, user_id: str, *, limit: int, before: SessionCursor | None = None
    ) -> Sequence[SessionSummary]:
        raise self._error

    async def summary(self, session: Session) -> SessionSummary | None:
        raise self._error

    async def turns(self, session: Session) -> Sequence[Turn]:
        raise self._error

    async def search(self, user_id: str, text: str, *, limit: int) -> Sequence[Match]:
        raise self._error

    async def rated(self, wanted: RatingFilter) -> Sequence[RatedTurn]:
        raise self._error

    async def rename(self, session: Session, title: str) -> bool:
        raise self._error

    async def restore(self, session: Session, title: str, turns: Sequence[Turn]) -> None:
        raise self._error

    @property
    def _error(self) -> HistoryError:
        return HistoryError("MongoDB is away.")


@asynccontextmanager
async def cut_off(_mongod: Mongod, folder: Path) -> AsyncIterator[SessionStore]:
    """Open a store whose MongoDB is not there at all."""
    local = LocalChatHistory(folder / "history.sqlite3")
    async with ResilientChatHistory(Away(), local) as history:
        yield history
