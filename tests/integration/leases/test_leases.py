import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chatbot.domain import Session, Turn
from chatbot.errors import BusyError, HistoryError, StoppedError
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.leases.port import SessionLeases
from chatbot.leases.sweeping import Sweeper
from tests.integration.leases.stores import (
    ANN,
    BOB,
    LASTING,
    Leases,
    Open,
    cut_off,
    in_file,
    in_mongodb,
    local,
    mongodb,
    resilient,
    turn,
)
from tests.servers.mongod import Mongod


@pytest.fixture(
    params=[
        pytest.param(local, id="file"),
        pytest.param(mongodb, id="MongoDB"),
        pytest.param(resilient, id="both"),
        pytest.param(cut_off, id="both, MongoDB away"),
    ]
)
async def store(
    request: pytest.FixtureRequest, mongod: Mongod, tmp_path: Path
) -> AsyncIterator[Leases]:
    open_leases: Open = request.param
    async with open_leases(mongod, tmp_path) as opened:
        yield opened


@pytest.fixture
def leases(store: Leases) -> SessionLeases:
    return store.lasting


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
    async def gets_it(number: int) -> bool:
        while True:
            try:
                return await leases.claim(ANN, turn(f"turn-{number}")) is None
            except BusyError:
                return False
            except HistoryError:  # a busy machine may miss the deadline
                continue

    got = await asyncio.gather(*map(gets_it, range(10)))
    assert sum(got) == 1


async def test_a_turn_hears_that_it_is_to_stop(leases: SessionLeases) -> None:
    assert not await leases.ask_to_stop(ANN)
    await leases.claim(ANN, turn("one"))
    await leases.claim(BOB, turn("other"))

    assert await leases.ask_to_stop(ANN)
    with pytest.raises(StoppedError):
        await leases.claim(ANN, turn("one"))
    assert await leases.claim(BOB, turn("other")) is None

    await leases.release(ANN, "one")
    assert await leases.claim(ANN, turn("two")) is None
    assert await leases.claim(ANN, turn("two")) is None


async def test_a_running_answer_is_shown(leases: SessionLeases) -> None:
    assert await leases.running(ANN) is None
    await leases.claim(ANN, turn("one"))
    assert await leases.claim(ANN, turn("one", "湖水清澈 $x")) is None
    shown = await leases.running(ANN)
    assert shown is not None
    assert (shown.id, shown.answer, shown.question) == ("one", "湖水清澈 $x", "one? $question")
    assert shown.record == turn("one").record
    assert await leases.running(BOB) is None


async def test_a_dead_holder_frees_the_session_and_leaves_its_text(store: Leases) -> None:
    leases = store.lasting
    await leases.claim(ANN, turn("dead"))
    await store.brief.claim(ANN, turn("dead", "so far"))
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


async def test_a_holder_that_was_only_late_goes_on(store: Leases) -> None:
    await store.brief.claim(ANN, turn("late"))
    leases = store.lasting
    assert await leases.claim(ANN, turn("late", "more")) is None
    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("next"))
    await leases.release(ANN, "late")  # by a sweep that had found it before
    assert await leases.claim(ANN, turn("late", "and more")) is None


async def test_what_the_dead_left_is_swept_up(store: Leases) -> None:
    history = LocalChatHistory(":memory:")
    await store.lasting.claim(BOB, turn("alive"))
    sweeper = Sweeper(history, store.lasting)
    assert await sweeper.sweep() == 0
    await store.brief.claim(ANN, turn("dead", "half an answer"))
    assert await sweeper.sweep() == 0  # it may only be late
    assert await sweeper.sweep() == 1
    [kept] = (await history.load(ANN, limit=5)).turns
    assert (kept.status, kept.answer) == ("stopped", "half an answer")
    assert await sweeper.sweep() == 0
    await history.close()


async def test_a_turn_that_goes_on_between_two_sweeps_is_left_alone(store: Leases) -> None:
    history = LocalChatHistory(":memory:")
    sweeper = Sweeper(history, store.lasting)
    await store.brief.claim(ANN, turn("late"))
    assert await sweeper.sweep() == 0
    await store.lasting.claim(ANN, turn("late", "more"))
    assert await sweeper.sweep() == 0
    running = await store.lasting.running(ANN)
    assert running is not None
    assert running.answer == "more"
    await history.close()


async def test_a_session_that_cannot_be_kept_holds_up_no_other(store: Leases) -> None:
    history = Picky(":memory:")
    await store.brief.claim(ANN, turn("refused", "a"))
    await store.brief.claim(BOB, turn("taken", "b"))
    sweeper = Sweeper(history, store.lasting)
    assert [await sweeper.sweep() for _ in range(2)] == [0, 1]
    assert [t.id for t in (await history.load(BOB, limit=5)).turns] == ["taken"]
    await history.close()


class Picky(LocalChatHistory):
    """A history that refuses the turns of one user."""

    async def save(self, session: Session, turn: Turn) -> str:
        if session == ANN:
            message = "This one is refused."
            raise HistoryError(message)
        return await super().save(session, turn)


NO_TURNS = ["", "null", "[]", "{}", '{"id": 1}', '{"id": "a", "question": ""}']


@pytest.mark.parametrize("text", NO_TURNS)
async def test_a_lease_that_cannot_be_read_is_no_obstacle_in_a_file(
    tmp_path: Path, text: str
) -> None:
    leases = in_file(tmp_path, LASTING)
    await leases.claim(ANN, turn("dead"))
    with closing(
        sqlite3.connect(tmp_path / "leases.sqlite3", isolation_level=None)
    ) as connection:
        connection.execute("UPDATE leases SET turn = ?, expires_at = 0", (text,))
    assert await leases.abandoned(5) == []
    assert await leases.claim(ANN, turn("next")) is None
    await leases.close()


@pytest.mark.parametrize("text", NO_TURNS)
async def test_a_lease_that_cannot_be_read_is_no_obstacle_in_mongodb(
    mongod: Mongod, text: str
) -> None:
    async with open_client(mongod.uri) as client:
        leases = in_mongodb(client, "unreadable", LASTING)
        broken = {
            "turn": text,
            "turn_id": "dead",
            "expires_at": datetime(2026, 1, 1, tzinfo=UTC),
        }
        await client["unreadable"]["chat_leases"].replace_one(
            {"_id": ANN.key}, broken, upsert=True
        )
        assert await leases.abandoned(5) == []
        assert await leases.claim(ANN, turn("next")) is None


async def test_no_word_of_a_turn_that_ended_is_left_in_the_file(tmp_path: Path) -> None:
    def found(word: bytes) -> bool:
        return any(word in file.read_bytes() for file in tmp_path.iterdir())

    leases, other = in_file(tmp_path, LASTING), in_file(tmp_path, LASTING)
    await other.claim(BOB, turn("running", "plugh"))
    for number in range(20):
        await leases.claim(ANN, turn("ended", f"xyzzy {number}"))
    assert found(b"xyzzy")
    await leases.release(ANN, "ended")
    assert await leases.abandoned(5) == []
    assert not found(b"xyzzy")
    assert found(b"plugh")
    await leases.close()
    await other.close()
