"""MongoDB goes away in the middle of conversations, and comes back."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatbot.domain import Session
from chatbot.errors import HistoryError
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.resilient import ResilientChatHistory
from tests.integration.history.stores import Away, mongo_history, resilient_history, turn
from tests.servers.mongod import Mongod

SESSION = Session(session_id="s", user_id="alice")
DATABASE = "outage"
PATIENCE = 15.0

Fault = Callable[[Mongod], None]


@pytest.fixture(scope="module")
def fragile() -> Iterator[Mongod]:
    with Mongod() as server:
        yield server


@pytest.fixture
async def server(fragile: Mongod) -> AsyncIterator[Mongod]:
    """A MongoDB that the test may stop."""
    fragile.recover()
    async with open_client(fragile.uri) as client:
        await client.drop_database(DATABASE)
    yield fragile
    fragile.recover()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


async def recovered(history: ResilientChatHistory) -> None:
    """Return when the history says that it is not degraded any more."""
    async with asyncio.timeout(PATIENCE):
        while await history.check():  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.05)


async def stored(server: Mongod, session: Session = SESSION) -> list[str]:
    async with mongo_history(server, DATABASE) as history:
        return [turn.id for turn in (await history.load(session, limit=1000)).turns]


async def arrived(server: Mongod, expected: list[str], session: Session = SESSION) -> None:
    """Return when MongoDB holds exactly these turns in this order."""
    found: list[str] = []
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = await stored(server, session)
        if found == expected:
            return
        await asyncio.sleep(0.1)
    pytest.fail(f"MongoDB holds {found} in the place of {expected}")


@asynccontextmanager
async def opened(server: Mongod, path: Path | str) -> AsyncIterator[ResilientChatHistory]:
    async with resilient_history(server, path, DATABASE) as history:
        yield history


@pytest.mark.parametrize("fault", [Mongod.kill, Mongod.pause], ids=["killed", "hanging"])
async def test_a_conversation_goes_on_and_arrives_once_and_in_order(
    server: Mongod, path: Path, fault: Fault
) -> None:
    async with opened(server, path) as history:
        for number in range(3):
            assert await history.save(SESSION, turn(str(number), second=number)) == ""
        await history.load(SESSION, limit=20)
        fault(server)
        first, *later = [await _timed_turn(history, number) for number in range(3, 8)]
        assert first < 2.2  # a load and a save that start before anyone knows
        assert max(later) < 0.3
        await asyncio.to_thread(server.recover)
        await recovered(history)
        await history.save(SESSION, turn("8", second=8))
        loaded = await history.load(SESSION, limit=20)
        assert [turn.id for turn in loaded.turns] == [str(number) for number in range(9)]
        assert loaded.degraded == ""
    assert await stored(server) == [str(number) for number in range(9)]


async def _timed_turn(history: ResilientChatHistory, number: int) -> float:
    start = time.perf_counter()
    loaded = await history.load(SESSION, limit=20)
    degraded = await history.save(SESSION, turn(str(number), second=number))
    took = time.perf_counter() - start
    assert "MongoDB" in loaded.degraded
    assert "MongoDB" in degraded
    # What was said before the outage is still known.
    assert [turn.id for turn in loaded.turns] == [str(before) for before in range(number)]
    return took


async def test_a_hung_server_costs_one_call_at_most_a_second(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0"))
        server.pause()
        start = time.perf_counter()
        degraded = await asyncio.gather(
            *(history.save(Session(session_id=f"s{n}"), turn("1")) for n in range(10))
        )
        assert time.perf_counter() - start < 1.3
        assert all(degraded)
        server.resume()
        await recovered(history)
        for number in range(10):
            await arrived(server, ["1"], Session(session_id=f"s{number}"))


async def test_a_write_that_lands_after_its_deadline_is_not_doubled(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        for number in range(6):
            await history.save(SESSION, turn(f"a{number}"))
            if number % 3 == 1:
                server.pause()
            if number % 3 == 2:
                server.resume()
                await recovered(history)
        await recovered(history)
    expected = [f"a{number}" for number in range(6)]
    await _resend(server, path)
    assert await stored(server) == expected


async def _resend(server: Mongod, path: Path) -> None:
    async with opened(server, path) as history:
        await history.load(SESSION, limit=1)


async def test_turns_outlive_the_process_that_kept_them(server: Mongod, path: Path) -> None:
    server.kill()
    async with opened(server, path) as history:
        for number in range(250):
            assert await history.save(SESSION, turn(str(number), second=number))
    async with opened(server, path) as history:
        loaded = await history.load(SESSION, limit=2)
        assert [turn.id for turn in loaded.turns] == ["248", "249"]
        await asyncio.to_thread(server.start)
        await arrived(server, [str(number) for number in range(250)])


async def test_another_process_sends_what_a_dead_one_left(server: Mongod, path: Path) -> None:
    async with opened(server, path) as survivor:
        await survivor.save(SESSION, turn("0"))
        await leave_a_turn(path, "1")
        await arrived(server, ["0", "1"])


async def leave_a_turn(path: Path, name: str) -> None:
    """Do what a process does that MongoDB does not answer, and that ends before it does."""
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as history:
        await history.save(SESSION, turn(name, second=1))


async def test_a_clear_during_an_outage_reaches_mongodb(server: Mongod, path: Path) -> None:
    other = Session(session_id="other", user_id="alice")
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0"))
        await history.save(other, turn("0"))
        server.kill()
        await history.save(SESSION, turn("1", second=1))
        assert await history.clear(SESSION) == 2
        assert (await history.load(SESSION, limit=9)).turns == ()
        await history.save(SESSION, turn("2", second=2))
        await asyncio.to_thread(server.start)
        await recovered(history)
        await arrived(server, ["2"])
        await arrived(server, ["0"], other)


async def test_a_stopped_turn_that_is_completed_during_the_outage_arrives_complete(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0", status="stopped", answer="ha"))
        server.kill()
        await history.save(SESSION, turn("1", status="failed", answer=""))
        await history.save(SESSION, turn("0", answer="half and whole"))
        await history.save(SESSION, turn("1", answer="yes"))
        await asyncio.to_thread(server.start)
        await recovered(history)
        await arrived(server, ["0", "1"])
    async with mongo_history(server, DATABASE) as mongo:
        turns = (await mongo.load(SESSION, limit=9)).turns
        assert [(t.status, t.answer) for t in turns] == [
            ("complete", "half and whole"),
            ("complete", "yes"),
        ]


async def test_a_full_outbox_says_so_and_takes_turns_again_later(
    server: Mongod, path: Path
) -> None:
    async with mongo_history(server, DATABASE) as primary:
        local = LocalChatHistory(path)
        async with ResilientChatHistory(primary, local, outbox_limit=3) as history:
            server.kill()
            for number in range(3):
                await history.save(SESSION, turn(str(number), second=number))
            with pytest.raises(HistoryError, match="3 turns wait"):
                await history.save(SESSION, turn("3", second=3))
            assert "3 turns wait" in await history.check()
            await asyncio.to_thread(server.start)
            await recovered(history)
            await arrived(server, ["0", "1", "2"])
            assert await history.save(SESSION, turn("3", second=3)) == ""


def damage(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"not a database" * 999)


async def test_a_local_file_that_fails_does_not_stop_mongodb(
    server: Mongod, tmp_path: Path
) -> None:
    path = tmp_path / "history.sqlite3"
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0"))
        damage(tmp_path)
        assert await history.save(SESSION, turn("1", second=1)) == ""
        loaded = await history.load(SESSION, limit=9)
        assert [turn.id for turn in loaded.turns] == ["0", "1"]
        assert loaded.degraded == ""


async def test_without_a_file_an_outage_is_survived_as_long_as_the_process(
    server: Mongod,
) -> None:
    async with opened(server, ":memory:") as history:
        await history.save(SESSION, turn("0"))
        server.kill()
        assert await history.save(SESSION, turn("1", second=1))
        await asyncio.to_thread(server.start)
        await recovered(history)
        await arrived(server, ["0", "1"])
