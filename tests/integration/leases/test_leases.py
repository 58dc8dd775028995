import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chatbot.domain import Session, Turn
from chatbot.errors import BusyError, HistoryError
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.leases.local import LocalLeases
from chatbot.leases.mongodb import MongoLeases
from chatbot.leases.resilient import ResilientLeases
from chatbot.leases.sweeping import Sweeper
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


@pytest.fixture(
    params=[
        pytest.param(local, id="file"),
        pytest.param(in_memory, id="memory"),
        pytest.param(mongodb, id="MongoDB"),
        pytest.param(resilient, id="both"),
        pytest.param(cut_off, id="both, MongoDB away"),
    ]
)
async def leases(
    request: pytest.FixtureRequest, mongod: Mongod, tmp_path: Path
) -> AsyncIterator[SessionLeases]:
    open_leases: Open = request.param
    async with open_leases(mongod, tmp_path) as opened:
        yield opened


async def expire() -> None:
    await asyncio.sleep(SECONDS + 0.1)


async def test_one_turn_at_a_time(leases: SessionLeases) -> None:
    assert await leases.claim(ANN, turn("one")) is None
    with pytest.raises(BusyError) as raised:
        await leases.claim(ANN, turn("two"))
    assert raised.value.retryable
    assert await leases.claim(BOB, turn("three")) is None
    assert await leases.claim(ANN, turn("one")) is None
    await leases.release(ANN, "two")
    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("two"))
    await leases.release(ANN, "one")
    assert await leases.claim(ANN, turn("two")) is None


async def test_only_one_of_many_gets_it(leases: SessionLeases) -> None:
    claims = [leases.claim(ANN, turn(f"turn-{number}")) for number in range(10)]
    results = await asyncio.gather(*claims, return_exceptions=True)
    assert sum(isinstance(result, BusyError) for result in results) == 9
    assert results.count(None) == 1


async def test_a_running_answer_is_shown(leases: SessionLeases) -> None:
    assert await leases.running(ANN) is None
    await leases.claim(ANN, turn("one"))
    assert await leases.claim(ANN, turn("one", "湖水清澈 $x")) is None
    shown = await leases.running(ANN)
    assert shown is not None
    assert (shown.id, shown.answer, shown.question) == ("one", "湖水清澈 $x", "one? $question")
    assert shown.record == turn("one").record
    assert await leases.running(BOB) is None


async def test_a_dead_holder_frees_the_session_and_leaves_its_text(
    leases: SessionLeases,
) -> None:
    await leases.claim(ANN, turn("dead"))
    await leases.claim(ANN, turn("dead", "so far"))
    await expire()
    assert await leases.running(ANN) is None
    for _ in range(2):  # until it was kept, whoever asks is told
        left = await leases.claim(ANN, turn("next"))
        assert left is not None
        assert (left.id, left.answer, left.status) == ("dead", "so far", "stopped")
        assert left.record == turn("dead").record
    await leases.release(ANN, "dead")
    assert await leases.claim(ANN, turn("next")) is None
    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("dead", "too late"))
    assert await leases.claim(ANN, turn("next")) is None


async def test_a_holder_that_was_only_late_goes_on(leases: SessionLeases) -> None:
    await leases.claim(ANN, turn("late"))
    await expire()
    assert await leases.claim(ANN, turn("late", "more")) is None
    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("next"))
    await leases.release(ANN, "late")  # by a sweep that had found it before
    assert await leases.claim(ANN, turn("late", "and more")) is None


async def test_a_renewed_lease_does_not_expire(leases: SessionLeases) -> None:
    await leases.claim(ANN, turn("one"))
    for _ in range(4):
        await asyncio.sleep(SECONDS / 2)
        assert await leases.claim(ANN, turn("one")) is None
    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("two"))


async def test_what_the_dead_left_is_swept_up(leases: SessionLeases) -> None:
    history = LocalChatHistory(":memory:")
    await leases.claim(ANN, turn("dead", "half an answer"))
    await leases.claim(BOB, turn("alive"))
    sweeper = Sweeper(history, leases)
    assert await sweeper.sweep() == 0
    await expire()
    await leases.claim(BOB, turn("alive"))
    assert await sweeper.sweep() == 1
    [kept] = (await history.load(ANN, limit=5)).turns
    assert (kept.status, kept.answer) == ("stopped", "half an answer")
    assert await sweeper.sweep() == 0
    await history.close()


async def test_leases_are_shared_between_processes(tmp_path: Path, mongod: Mongod) -> None:
    async with local(mongod, tmp_path) as one, local(mongod, tmp_path) as other:
        await one.claim(ANN, turn("one", "said in one process"))
        with pytest.raises(BusyError):
            await other.claim(ANN, turn("two"))
        shown = await other.running(ANN)
        assert shown is not None
        assert shown.answer == "said in one process"


@pytest.mark.parametrize("away_first", [False, True], ids=["goes away", "comes back"])
async def test_a_session_stays_with_its_turn_when_mongodb(
    mongod: Mongod, tmp_path: Path, away_first: bool
) -> None:
    away = [away_first]
    async with mongodb(mongod, tmp_path) as primary, local(mongod, tmp_path) as second:
        both = ResilientLeases(primary, second, away=lambda: away[0], failed=lambda _: None)
        await both.claim(ANN, turn("one"))
        away[0] = not away_first
        with pytest.raises(BusyError):
            await both.claim(ANN, turn("two"))
        assert await both.claim(ANN, turn("one")) is None
        with pytest.raises(BusyError):
            await both.claim(ANN, turn("two"))
        await both.release(ANN, "one")
        away[0] = False
        await primary.release(ANN, "one")
        assert await both.claim(ANN, turn("two")) is None


async def test_a_failure_is_told(tmp_path: Path) -> None:
    told: list[HistoryError] = []
    with Mongod() as server:
        async with mongodb(server, tmp_path) as primary, local(server, tmp_path) as second:
            both = ResilientLeases(primary, second, away=lambda: bool(told), failed=told.append)
            server.pause()
            await both.claim(ANN, turn("one"))
            assert len(told) == 1
            assert await both.claim(ANN, turn("one")) is None
            server.resume()


async def test_a_lease_outlives_the_loss_of_mongodb(tmp_path: Path) -> None:
    with Mongod() as server:
        async with mongodb(server, tmp_path) as primary:
            second = LocalLeases(":memory:", seconds=60)
            both = ResilientLeases(primary, second, away=lambda: False, failed=lambda _: None)
            server.pause()
            assert await both.claim(ANN, turn("one")) is None
            with pytest.raises(HistoryError):
                await primary.claim(ANN, turn("one"))
            with pytest.raises(BusyError):
                await both.claim(ANN, turn("two"))
            server.resume()
            await second.close()
