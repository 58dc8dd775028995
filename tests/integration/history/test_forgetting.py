"""What is deleted stays deleted, whoever still writes, and wherever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chatbot.domain import Session
from chatbot.history.connection import Client, open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.resilient import ResilientChatHistory
from tests.integration.history.stores import (
    Away,
    empty,
    mongo_history,
    resilient_history,
    turn,
)
from tests.servers.mongod import Mongod

SESSION = Session(session_id="s", user_id="alice")
OTHER = Session(session_id="t", user_id="alice")
DATABASE = "forgetting"


@pytest.fixture
async def client(mongod: Mongod) -> AsyncIterator[Client]:
    await empty(mongod, DATABASE)
    async with open_client(mongod.uri) as opened:
        yield opened


async def test_what_is_deleted_while_it_is_written_leaves_nothing_behind(
    mongod: Mongod, client: Client
) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        for number in range(40):
            user = f"user-{number}"
            session = Session(session_id="s", user_id=user)
            running = turn("1", started_at=datetime.now(UTC))
            deed = history.clear(session) if number % 2 else history.forget_user(user)
            # Each at a moment of its own, somewhere in the middle of the save.
            await asyncio.gather(history.save(session, running), after(number / 8000, deed))
    messages, sessions = client[DATABASE].chat_history, client[DATABASE].chat_history_sessions
    assert await messages.find({}, {"_id": 1}).to_list() == []
    assert await sessions.count_documents({"title": {"$gt": ""}}) == 0


async def after(seconds: float, deed: Awaitable[object]) -> None:
    await asyncio.sleep(seconds)
    await deed


async def cut_off(path: Path, *deeds: str) -> None:
    """Save turns now, or forget the user, on a machine that does not reach MongoDB."""
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as history:
        for deed in deeds:
            if deed == "forget":
                await history.forget_user("alice")
            else:
                await history.save(SESSION, turn(deed, started_at=datetime.now(UTC)))


async def stored(mongod: Mongod, session: Session = SESSION) -> list[str]:
    async with mongo_history(mongod, DATABASE) as history:
        return [each.id for each in await history.turns(session)]


@pytest.mark.usefixtures("client")
async def test_a_turn_of_before_its_user_was_forgotten_elsewhere_does_not_come_back(
    mongod: Mongod, tmp_path: Path
) -> None:
    await cut_off(tmp_path / "one", "before")
    async with resilient_history(mongod, tmp_path / "two", DATABASE) as history:
        await history.save(OTHER, turn("1"))
        assert await history.forget_user("alice") == 1
    async with resilient_history(mongod, tmp_path / "one", DATABASE) as history:
        assert (await history.load(SESSION, limit=9)).turns == ()
        assert await history.sessions("alice", limit=9) == ()
        await history.save(SESSION, turn("after", started_at=datetime.now(UTC)))
    assert await stored(mongod) == ["after"]


@pytest.mark.parametrize("deed", ["clear", "forget the user"])
@pytest.mark.parametrize("renamed", [False, True], ids=["its own title", "renamed"])
async def test_what_was_said_since_a_deletion_that_arrives_late_stays(
    mongod: Mongod, client: Client, deed: str, *, renamed: bool
) -> None:
    now = datetime.now(UTC)
    async with mongo_history(mongod, DATABASE) as history:
        for hours, name in ((3, "before"), (1, "later")):
            each = turn(name, started_at=now - timedelta(hours=hours))
            for session in (SESSION, OTHER) if name == "before" else (SESSION,):
                await history.save(session, each)
        if renamed:
            await history.rename(SESSION, "my title")
        at = now - timedelta(hours=2)
        if deed == "clear":
            await history.forget(SESSION, at=at)
            await history.forget(OTHER, at=at)
        else:
            assert await history.forget_all("alice", at=at) == 2
        assert [each.id for each in await history.turns(SESSION)] == ["later"]
        (summary,) = await history.sessions("alice", limit=9)
        title = "my title" if renamed else "question later"
        assert (summary.session_id, summary.title, summary.turns) == ("s", title, 1)
    assert await client[DATABASE].chat_history.distinct("turn") == ["later"]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("deed", ["clear", "forget the user"])
async def test_what_was_deleted_elsewhere_can_be_imported_here(
    mongod: Mongod, tmp_path: Path, deed: str
) -> None:
    turns = [turn("old"), turn("new", started_at=datetime.now(UTC))]
    async with resilient_history(mongod, tmp_path / "one", DATABASE) as elsewhere:
        await elsewhere.save(SESSION, turn("1", started_at=datetime.now(UTC)))
        if deed == "clear":
            await elsewhere.clear(SESSION)
        else:
            await elsewhere.forget_user("alice")
    async with resilient_history(mongod, tmp_path / "two", DATABASE) as history:
        await history.restore(SESSION, "back", turns)
        assert list(await history.turns(SESSION)) == turns
    assert await stored(mongod) == ["old", "new"]


async def test_the_owner_of_what_langchain_wrote_is_forgotten_with_it(
    mongod: Mongod, client: Client
) -> None:
    messages = client[DATABASE].chat_history
    for name in ("one", "two"):
        row = {"SessionId": name, "History": '{"type": "human", "data": {"content": "q"}}'}
        await messages.insert_one(row)
    async with mongo_history(mongod, DATABASE, owner="alice") as history:
        assert await history.forget_user("bob") == 0
        assert await messages.count_documents({}) == 2
        assert await history.forget_user("alice") == 2
    assert await messages.count_documents({}) == 0


@pytest.mark.usefixtures("client")
async def test_the_mark_of_a_forgotten_user_expires(mongod: Mongod, client: Client) -> None:
    async with mongo_history(mongod, DATABASE, ttl_days=1 / 86400) as history:
        await history.forget_user("alice")
        await history.sessions("alice", limit=9)
        sessions = client[DATABASE].chat_history_sessions
        assert await sessions.count_documents({}) == 1
        async with asyncio.timeout(20):
            while await sessions.count_documents({}):  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.2)
