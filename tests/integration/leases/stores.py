"""The stores of leases, opened for a test."""

import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from chatbot.domain import Session, Turn
from chatbot.history.connection import Client, open_client
from chatbot.leases.local import LocalLeases
from chatbot.leases.mongodb import MongoLeases
from chatbot.leases.port import SessionLeases
from chatbot.leases.resilient import ResilientLeases
from tests.servers.mongod import Mongod

LASTING, BRIEF = 60.0, 0.0


@dataclass(frozen=True, kw_only=True)
class Leases:
    """A store of leases that outlast the test, and of those of holders that died at once."""

    lasting: SessionLeases
    brief: SessionLeases


Open = Callable[[Mongod, Path], AbstractAsyncContextManager[Leases]]
ANN = Session(session_id="s", user_id="ann")
BOB = Session(session_id="s", user_id="bob")


def turn(name: str, answer: str = "") -> Turn:
    record = {"intent": "general_chat", "$set": "no operator"}
    return Turn(
        id=name,
        question=f"{name}? $question",
        answer=answer,
        started_at=datetime.now(UTC),
        record=record,
    )


def in_file(folder: Path, seconds: float) -> LocalLeases:
    return LocalLeases(folder / "leases.sqlite3", seconds=seconds)


def in_mongodb(client: Client, database: str, seconds: float) -> MongoLeases:
    return MongoLeases(client, database=database, collection="chat", seconds=seconds)


@asynccontextmanager
async def local(mongod: Mongod, folder: Path) -> AsyncIterator[Leases]:
    opened = [in_file(folder, seconds) for seconds in (LASTING, BRIEF)]
    yield Leases(lasting=opened[0], brief=opened[1])
    for leases in opened:
        await leases.close()


@asynccontextmanager
async def mongodb(mongod: Mongod, folder: Path) -> AsyncIterator[Leases]:
    name = f"leases-{uuid.uuid4().hex[:8]}"
    async with open_client(mongod.uri) as client:
        lasting, brief = (in_mongodb(client, name, seconds) for seconds in (LASTING, BRIEF))
        yield Leases(lasting=lasting, brief=brief)
        await client.drop_database(name)


@asynccontextmanager
async def resilient(
    mongod: Mongod, folder: Path, *, away: bool = False
) -> AsyncIterator[Leases]:
    async with mongodb(mongod, folder) as primary, local(mongod, folder) as second:
        yield Leases(
            lasting=both(primary.lasting, second.lasting, away=away),
            brief=both(primary.brief, second.brief, away=away),
        )


def cut_off(mongod: Mongod, folder: Path) -> AbstractAsyncContextManager[Leases]:
    return resilient(mongod, folder, away=True)


def both(
    primary: SessionLeases, second: SessionLeases, *, away: bool = False
) -> ResilientLeases:
    return ResilientLeases(primary, second, away=lambda: away, failed=lambda _: None)
