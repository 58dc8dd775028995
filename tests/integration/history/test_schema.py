"""Documents of an earlier version are brought up to date; those of a later one are refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatbot.domain import Session
from chatbot.errors import ConfigurationError
from chatbot.history.connection import Client, open_client
from chatbot.history.documents import SCHEMA_VERSION
from chatbot.history.indexes import OLD_BY_PLACE
from chatbot.history.mongodb import MongoChatHistory
from tests.integration.history.stores import mongo_history, resilient_history, turn
from tests.servers.mongod import Mongod

ALICE = Session(session_id="s", user_id="alice")
OTHER = Session(session_id="t", user_id="alice")
DATABASE = "schema"


@pytest.fixture
async def client(mongod: Mongod) -> AsyncIterator[Client]:
    async with open_client(mongod.uri) as opened:
        await opened.drop_database(DATABASE)
        yield opened


@pytest.fixture
async def first(mongod: Mongod, client: Client) -> Client:
    """What the first version wrote: no words to search by, and another index."""
    async with mongo_history(mongod, DATABASE) as history:
        for number in range(3):
            await history.save(ALICE, turn(f"{number}", second=number))
        await history.save(OTHER, turn("3", answer="瓦尔登湖的风景", second=3))
    messages = client[DATABASE].chat_history
    await messages.update_many({}, {"$set": {"version": 1}, "$unset": {"words": ""}})
    await client[DATABASE].chat_history_sessions.update_many({}, {"$set": {"version": 1}})
    await messages.drop_indexes()
    await messages.create_index([("SessionId", 1), ("seq", 1), ("_id", 1)])
    return client


async def migrated(history: MongoChatHistory) -> None:
    """Return when what the first version wrote can be searched."""
    async with asyncio.timeout(10):
        while len(await history.search("alice", "question", limit=9)) < 4:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.02)


async def versions(client: Client) -> set[int]:
    database = client[DATABASE]
    found: set[int] = set()
    for name in ("chat_history", "chat_history_sessions"):
        async with asyncio.timeout(10):
            while 1 in (there := await database[name].distinct("version")):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        found |= set(there)
    return found


async def test_an_earlier_version_is_migrated_also_by_two_at_once(
    mongod: Mongod, first: Client
) -> None:
    async with (
        mongo_history(mongod, DATABASE) as one,
        mongo_history(mongod, DATABASE) as two,
    ):
        assert await one.search("alice", "风景", limit=9) == ()
        await asyncio.gather(one.load(ALICE, limit=1), two.load(ALICE, limit=1))
        await migrated(one)
        (match,) = await two.search("alice", "风景", limit=9)
        assert match.turn == turn("3", answer="瓦尔登湖的风景", second=3)
        assert await versions(first) == {SCHEMA_VERSION}
        assert [each.id for each in await one.turns(ALICE)] == ["0", "1", "2"]
    assert OLD_BY_PLACE not in await first[DATABASE].chat_history.index_information()


async def test_what_an_earlier_version_still_writes_is_migrated_the_next_time(
    mongod: Mongod, first: Client
) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        await history.load(ALICE, limit=1)
        await migrated(history)
        await versions(first)
    database = first[DATABASE]
    old = {"$set": {"version": 1}, "$unset": {"words": ""}}
    await database.chat_history.update_one({"turn": "3", "text": {"$gt": ""}}, old)
    await database.chat_history_sessions.update_one(
        {"_id": "alice t"}, {"$set": {"version": 1}}
    )
    async with mongo_history(mongod, DATABASE) as history:
        await history.save(OTHER, turn("4", second=4))
        async with asyncio.timeout(10):
            while len(await history.search("alice", "风景", limit=9)) < 1:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.02)


async def test_a_turn_that_is_completed_meanwhile_keeps_its_words(
    mongod: Mongod, first: Client
) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        await history.save(OTHER, turn("5", answer="half", status="stopped", second=5))
        database = first[DATABASE]
        old = {"$set": {"version": 1}, "$unset": {"words": ""}}
        await database.chat_history.update_many({"turn": "5"}, old)
        await history.save(OTHER, turn("5", answer="whole", second=5))
        stored = await database.chat_history.find({"turn": "5"}).to_list()
        assert {each["version"] for each in stored} == {SCHEMA_VERSION}
        assert len(await history.search("alice", "whole", limit=9)) == 1


async def test_a_later_version_is_refused_at_once(
    mongod: Mongod, client: Client, tmp_path: Path
) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        await history.save(ALICE, turn("1"))
    later = {"$set": {"version": SCHEMA_VERSION + 1}}
    await client[DATABASE].chat_history_sessions.update_many({}, later)
    with pytest.raises(ConfigurationError, match="newer version"):
        async with resilient_history(mongod, tmp_path / "file", DATABASE):
            pytest.fail("it was opened")
    async with mongo_history(mongod, DATABASE) as mongo:
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="newer version"):
                await mongo.load(OTHER, limit=9)
        with pytest.raises(ConfigurationError, match="newer version"):
            await mongo.save(OTHER, turn("2"))
        assert "newer version" in await mongo.check()
    assert await client[DATABASE].chat_history.distinct("turn") == ["1"]
