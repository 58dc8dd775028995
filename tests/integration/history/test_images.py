"""Images are kept with their session, for their user, and end with it."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chatbot.domain import Session
from chatbot.errors import HistoryError
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.images.image import Image, image_of
from chatbot.ports import SessionStore
from tests.integration.history.stores import (
    active_at,
    looking_into,
    mongo_history,
    resilient_history,
    turn,
)
from tests.servers.mongod import Mongod

ALICE = Session(session_id="s", user_id="alice")
OTHER = Session(session_id="t", user_id="alice")
BOB = Session(session_id="s", user_id="bob")
DATABASE = "images"
PATIENCE = 60.0


def png(text: str) -> Image:
    return image_of(b"\x89PNG\r\n\x1a\n" + text.encode(), 1_000_000)


ONE, TWO = png("one"), png("two")


async def found(history: SessionStore, image: Image, user_id: str = "alice") -> Image | None:
    try:
        return await history.find_image(user_id, image.name)
    except HistoryError:  # it may be in the MongoDB that is away
        return None


async def test_an_image_comes_back_to_its_user_alone(history: SessionStore) -> None:
    for _ in range(2):
        await history.keep_image(ALICE, ONE)
    assert await found(history, ONE) == ONE
    assert await found(history, ONE, "bob") is None
    assert await found(history, TWO) is None


async def test_a_session_without_turns_is_not_listed_for_its_images(
    history: SessionStore,
) -> None:
    await history.keep_image(ALICE, ONE)
    assert await history.sessions("alice", limit=10) == ()
    await history.save(ALICE, turn("1", started_at=datetime.now(UTC)))
    assert [each.turns for each in await history.sessions("alice", limit=10)] == [1]
    assert await found(history, ONE) == ONE


async def test_a_cleared_session_takes_its_images_and_no_others(history: SessionStore) -> None:
    await history.save(ALICE, turn("1", started_at=datetime.now(UTC)))
    for session in (ALICE, OTHER, BOB):
        await history.keep_image(session, ONE)
    await history.keep_image(ALICE, TWO)
    await history.clear(ALICE)
    assert await found(history, TWO) is None
    assert await found(history, ONE) == ONE  # of the other session
    await history.clear(OTHER)
    assert await found(history, ONE) is None
    assert await found(history, ONE, "bob") == ONE
    await history.keep_image(ALICE, TWO)
    assert await found(history, TWO) == TWO


async def test_a_user_who_is_forgotten_leaves_no_images(history: SessionStore) -> None:
    await history.save(ALICE, turn("1", started_at=datetime.now(UTC)))
    for session in (ALICE, OTHER, BOB):  # the other one has no turn
        await history.keep_image(session, ONE)
    await history.forget_user("alice")
    assert await found(history, ONE) is None
    assert await found(history, ONE, "bob") == ONE


async def test_images_of_an_expired_session_are_removed(tmp_path: Path) -> None:
    path, two_days_ago = tmp_path / "history.sqlite3", datetime.now(UTC) - timedelta(days=2)
    async with LocalChatHistory(path, ttl_days=1) as history:
        await history.keep_image(ALICE, ONE)
        await history.save(ALICE, turn("1", started_at=datetime.now(UTC)))
        assert await history.find_image("alice", ONE.name) == ONE
        await active_at(history, "s", two_days_ago)
        await history.keep_image(ALICE, TWO)  # the session begins anew
        assert await history.find_image("alice", ONE.name) is None
        await active_at(history, "s", two_days_ago)
    async with LocalChatHistory(path, ttl_days=1) as history:  # which sweeps
        assert await history.find_image("alice", TWO.name) is None


async def test_mongodb_removes_images_with_their_session(mongod: Mongod) -> None:
    async with mongo_history(mongod, DATABASE, collection="expiring") as history:
        await history._indexes.make()  # noqa: SLF001 - what the server is told
        indexes = await history._store.images.index_information()  # noqa: SLF001
        assert indexes["kept_at_1"]["expireAfterSeconds"] == 32 * 24 * 3600
        await history.keep_image(ALICE, ONE)
        await history.save(ALICE, turn("1", started_at=datetime.now(UTC)))
        await aged(history, days=3)
        await history.save(ALICE, turn("2", started_at=datetime.now(UTC)))
        [document] = await history._store.images.find().to_list()  # noqa: SLF001
        assert datetime.now(UTC) - document["kept_at"] < timedelta(minutes=1)
        await aged(history, days=40)
        await history.save(ALICE, turn("3", started_at=datetime.now(UTC)))
        assert await history.find_image("alice", ONE.name) is None


async def aged(history: MongoChatHistory, *, days: int) -> None:
    """Make all that is there so much older."""
    store, then = history._store, datetime.now(UTC) - timedelta(days=days)  # noqa: SLF001
    await store.images.update_many({}, {"$set": {"kept_at": then, "created_at": then}})
    await store.sessions.update_many({}, {"$set": {"kept_at": then, "last_active": then}})


async def test_an_image_of_a_turn_that_was_running_is_not_kept_behind_a_clear(
    history: SessionStore,
) -> None:
    before = datetime.now(UTC)
    await history.save(ALICE, turn("1", started_at=before))
    await history.clear(ALICE)
    await history.keep_image(ALICE, ONE, at=before)
    assert await found(history, ONE) is None
    await history.forget_user("bob")
    await history.keep_image(BOB, ONE, at=before)
    assert await found(history, ONE, "bob") is None


async def test_images_of_an_outage_reach_mongodb_and_leave_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    with Mongod() as server:
        async with resilient_history(server, path, DATABASE) as history:
            server.kill()
            await history.keep_image(ALICE, ONE)
            await history.save(ALICE, turn("1", started_at=datetime.now(UTC)))
            await history.keep_image(OTHER, TWO)
            await history.clear(OTHER)
            assert await history.find_image("alice", ONE.name) == ONE
            with pytest.raises(HistoryError, match="Until it is back"):
                await history.find_image("alice", TWO.name)
            await asyncio.to_thread(server.recover)
            async with asyncio.timeout(PATIENCE), looking_into(server) as client:
                images = client[DATABASE]["chat_history_images"]
                while await images.count_documents({}) == 0:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.05)
            assert await history.find_image("alice", ONE.name) == ONE
            assert await history.find_image("alice", TWO.name) is None
        async with LocalChatHistory(path) as local:
            assert await local.find_image("alice", ONE.name) is None
