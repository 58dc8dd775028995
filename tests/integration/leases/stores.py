"""The stores of leases, opened for a test, with leases that expire soon."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from chatbot.domain import Session, Turn
from chatbot.history.connection import open_client
from chatbot.leases.local import LocalLeases
from chatbot.leases.mongodb import MongoLeases
from chatbot.leases.resilient import ResilientLeases
from chatbot.ports import SessionLeases
from tests.servers.mongod import Mongod

SECONDS = 0.5
Opened = AbstractAsyncContextManager[SessionLeases]
Open = Callable[[Mongod, Path], Opened]
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


@asynccontextmanager
async def local(mongod: Mongod, folder: Path) -> AsyncIterator[SessionLeases]:
    leases = LocalLeases(folder / "leases.sqlite3", seconds=SECONDS)
    yield leases
    await leases.close()


@asynccontextmanager
async def in_memory(mongod: Mongod, folder: Path) -> AsyncIterator[SessionLeases]:
    leases = LocalLeases(":memory:", seconds=SECONDS)
    yield leases
    await leases.close()


@asynccontextmanager
async def mongodb(mongod: Mongod, folder: Path) -> AsyncIterator[SessionLeases]:
    client = open_client(mongod.uri)
    name = f"leases-{uuid.uuid4().hex[:8]}"
    yield MongoLeases(client, database=name, collection="chat", seconds=SECONDS)
    await client.drop_database(name)
    await client.close()


@asynccontextmanager
async def resilient(mongod: Mongod, folder: Path) -> AsyncIterator[SessionLeases]:
    async with mongodb(mongod, folder) as primary, local(mongod, folder) as second:
        yield ResilientLeases(primary, second, away=lambda: False, failed=lambda _: None)


@asynccontextmanager
async def cut_off(mongod: Mongod, folder: Path) -> AsyncIterator[SessionLeases]:
    async with mongodb(mongod, folder) as primary, local(mongod, folder) as second:
        yield ResilientLeases(primary, second, away=lambda: True, failed=lambda _: None)


async def expire() -> None:
    await asyncio.sleep(SECONDS + 0.1)
