"""MongoDB goes away in the middle of conversations, and comes back."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from chatbot.domain import Session, Turn
from chatbot.errors import HistoryError, InputError
from chatbot.history import outbox
from chatbot.history.archive import export_session, import_session
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.history.resilient import ResilientChatHistory
from tests.integration.history.stores import (
    Away,
    looking_into,
    mongo_history,
    resilient_history,
    turn,
)
from tests.servers.mongod import Mongod
from tests.stopwatch import Stopwatch

SESSION = Session(session_id="s", user_id="alice")
DATABASE = "outage"
PATIENCE = 60.0
LOST_SECONDS = 1.3  # the second that a server which hangs may cost, and what is done besides

Fault = Callable[[Mongod], None]


@pytest.fixture(scope="module")
def fragile() -> Iterator[Mongod]:
    with Mongod() as server:
        yield server


@pytest.fixture
async def server(fragile: Mongod) -> AsyncIterator[Mongod]:
    """A MongoDB that the test may stop."""
    fragile.recover()
    async with looking_into(fragile) as client:
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
    """Return the turns that MongoDB holds. One that has just started may be slow to tell."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            async with mongo_history(server, DATABASE) as history:
                return [turn.id for turn in (await history.load(session, limit=1000)).turns]
        except HistoryError:
            if time.monotonic() > end:
                raise


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
        healthy = max([await _timed_turn(history, number) for number in range(3)])
        await history.load(SESSION, limit=20)
        fault(server)
        first, *later = [
            await _timed_turn(history, number, said="MongoDB") for number in range(3, 8)
        ]
        assert first - healthy < LOST_SECONDS
        assert min(later) - healthy < 0.2
        await asyncio.to_thread(server.recover)
        await recovered(history)
        await history.save(SESSION, turn("8", second=8))
        loaded = await history.load(SESSION, limit=20)
        assert [turn.id for turn in loaded.turns] == [str(number) for number in range(9)]
        assert loaded.degraded == ""
    assert await stored(server) == [str(number) for number in range(9)]


async def _timed_turn(history: ResilientChatHistory, number: int, said: str = "") -> float:
    stopwatch = Stopwatch()
    loaded = await history.load(SESSION, limit=20)
    degraded = await history.save(SESSION, turn(str(number), second=number))
    took = stopwatch.seconds()
    assert said in loaded.degraded
    assert said in degraded
    assert bool(loaded.degraded or degraded) is bool(said)
    # What was said before the outage is still known.
    assert [turn.id for turn in loaded.turns] == [str(before) for before in range(number)]
    return took


async def test_a_hung_server_costs_one_call_at_most_a_second(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0"))
        server.pause()
        stopwatch = Stopwatch()
        degraded = await asyncio.gather(
            *(history.save(Session(session_id=f"s{n}"), turn("1")) for n in range(10))
        )
        assert stopwatch.seconds() < LOST_SECONDS
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


async def test_machines_that_were_cut_off_agree_on_the_order_of_the_start(
    server: Mongod, tmp_path: Path
) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=1)

    def started(number: int) -> Turn:
        return turn(str(number), started_at=begun + timedelta(seconds=number))

    async with opened(server, tmp_path / "one") as history:
        await history.save(SESSION, started(0))
    for name, numbers in (("one", [1, 3, 6]), ("two", [2, 4, 5])):
        async with ResilientChatHistory(Away(), LocalChatHistory(tmp_path / name)) as cut_off:
            for number in numbers:
                await cut_off.save(SESSION, started(number))
    for name in ("two", "one"):
        async with opened(server, tmp_path / name) as history:
            await history.load(SESSION, limit=1)
    assert await stored(server) == [str(number) for number in range(7)]


async def test_a_turn_of_before_a_clear_elsewhere_does_not_come_back(
    server: Mongod, tmp_path: Path
) -> None:
    async with ResilientChatHistory(Away(), LocalChatHistory(tmp_path / "one")) as cut_off:
        await cut_off.save(SESSION, turn("before", started_at=datetime.now(UTC)))
    async with opened(server, tmp_path / "two") as history:
        await history.clear(SESSION)
    async with opened(server, tmp_path / "one") as history:
        assert (await history.load(SESSION, limit=9)).turns == ()
        await history.save(SESSION, turn("after", started_at=datetime.now(UTC)))
    assert await stored(server) == ["after"]


async def test_deeds_during_an_outage_reach_mongodb_in_order(
    server: Mongod, path: Path
) -> None:
    bob = Session(session_id="s", user_id="bob")
    async with opened(server, path) as history:
        for session in (SESSION, bob):
            await history.save(session, turn("0"))
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as cut_off:
        assert await cut_off.rename(SESSION, "one name")
        await cut_off.clear(SESSION)
        await cut_off.restore(SESSION, "another name", [turn("a"), turn("b", second=1)])
        assert [match.turn.id for match in await cut_off.search("alice", "b", limit=9)] == ["b"]
        assert await cut_off.forget_user("bob") == 1
        await cut_off.save(bob, turn("1", started_at=datetime.now(UTC)))
        assert "7 changes" in await cut_off.check()
    async with opened(server, path):
        await arrived(server, ["a", "b"])
        await arrived(server, ["1"], bob)
    async with mongo_history(server, DATABASE) as mongo:
        summary = await mongo.summary(SESSION)
        assert summary is not None
        assert summary.title == "another name"


async def test_a_session_that_is_refused_keeps_no_other_waiting(
    server: Mongod, path: Path
) -> None:
    refused = Session(session_id="x", user_id="alice")
    async with open_client(server.uri) as client:
        sessions = client[DATABASE].chat_history_sessions
        await sessions.insert_one({"_id": refused.key, "user_id": "somebody else"})
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as cut_off:
        await cut_off.save(refused, turn("0"))
        await cut_off.save(SESSION, turn("0"))
    async with opened(server, path) as history:
        await arrived(server, ["0"])
        with pytest.raises(InputError, match="another user"):
            await history.load(refused, limit=9)


async def test_a_clear_during_an_outage_reaches_mongodb(server: Mongod, path: Path) -> None:
    other = Session(session_id="other", user_id="alice")
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0"))
        await history.save(other, turn("0"))
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as cut_off:
        await cut_off.save(SESSION, turn("1", second=1))
        assert await cut_off.clear(SESSION) == 2
        assert (await cut_off.load(SESSION, limit=9)).turns == ()
        await cut_off.save(SESSION, turn("2", second=2))
    async with opened(server, path):
        await arrived(server, ["2"])
        await arrived(server, ["0"], other)


async def test_a_stopped_turn_that_is_completed_during_the_outage_arrives_complete(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0", status="stopped", answer="ha"))
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as cut_off:
        await cut_off.save(SESSION, turn("1", status="failed", answer=""))
        await cut_off.save(SESSION, turn("0", answer="half and whole"))
        await cut_off.save(SESSION, turn("1", answer="yes"))
    async with opened(server, path) as history:
        turns = (await history.load(SESSION, limit=9)).turns
        assert [(t.id, t.status, t.answer) for t in turns] == [
            ("0", "complete", "half and whole"),
            ("1", "complete", "yes"),
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
            assert "3 changes wait" in await history.check()
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


async def test_a_file_that_cannot_be_made_is_replaced_by_memory(
    server: Mongod, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    async with opened(server, tmp_path / "file" / "history.sqlite3") as history:
        assert await history.save(SESSION, turn("0")) == ""
    async with ResilientChatHistory(
        Away(), LocalChatHistory(tmp_path / "file" / "history.sqlite3")
    ) as cut_off:
        assert "MongoDB" in await cut_off.save(SESSION, turn("1", second=1))
        assert [turn.id for turn in await cut_off.turns(SESSION)] == ["1"]


async def test_a_short_look_forgets_nothing_that_was_kept(server: Mongod, path: Path) -> None:
    async with opened(server, path) as history:
        for number in range(5):
            await history.save(SESSION, turn(str(number), second=number))
        await history.load(SESSION, limit=9)
    async with mongo_history(server, DATABASE) as elsewhere:
        await elsewhere.save(SESSION, turn("5", second=5))
    async with opened(server, path) as history:
        await history.load(SESSION, limit=0)
        await history.load(SESSION, limit=2)
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as cut_off:
        loaded = await cut_off.load(SESSION, limit=9)
        with pytest.raises(HistoryError, match="as a whole"):
            await export_session(cut_off, SESSION)
    assert [turn.id for turn in loaded.turns] == [str(number) for number in range(6)]


async def test_what_was_cleared_elsewhere_is_not_shown_from_here(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        await history.save(SESSION, turn("0"))
    async with mongo_history(server, DATABASE) as elsewhere:
        await elsewhere.clear(SESSION)
    async with opened(server, path) as history:
        assert await history.find(SESSION, "0") is None
        assert (await history.load(SESSION, limit=2)).turns == ()
    async with ResilientChatHistory(Away(), LocalChatHistory(path)) as cut_off:
        assert (await cut_off.load(SESSION, limit=9)).turns == ()
        assert await cut_off.sessions("alice", limit=9) == ()


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


async def test_what_is_kept_here_is_never_given_for_the_whole(
    server: Mongod, path: Path
) -> None:
    async with opened(server, path) as history:
        await history.save(SESSION, turn("1"))
        server.kill()
        with pytest.raises(HistoryError):  # nobody knew that it is away
            await history.turns(SESSION)
        with pytest.raises(HistoryError):
            await export_session(history, SESSION)
        other = {"version": 1, "session_id": "s", "title": "another", "turns": []}
        with pytest.raises(HistoryError):  # it might be mixed with what is there
            await import_session(history, other, user_id=SESSION.user_id, session_id="t")
        await asyncio.to_thread(server.recover)
        await recovered(history)
        assert len((await export_session(history, SESSION))["turns"]) == 1


async def test_copies_in_memory_do_not_grow_without_end(server: Mongod) -> None:
    local = LocalChatHistory(":memory:")
    sessions = [Session(session_id=f"s{number}", user_id="alice") for number in range(9)]

    def kept(file: sqlite3.Connection) -> list[str]:
        rows = file.execute("SELECT DISTINCT key FROM turns ORDER BY key").fetchall()
        return [key for (key,) in rows]

    async with open_client(server.uri) as client:
        primary = MongoChatHistory(
            client, database=DATABASE, collection="chat_history", ttl_days=30
        )
        async with ResilientChatHistory(primary, local, sessions_in_memory=3) as history:
            for session in sessions:
                await history.save(session, turn("1", started_at=datetime.now(UTC)))
            async with asyncio.timeout(PATIENCE):
                while len(await local.file.read(kept)) > 3:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.1)
            assert await local.file.read(kept) == [each.key for each in sessions[-3:]]
            assert [len(await history.turns(session)) for session in sessions] == [1] * 9
            server.kill()
            for session in sessions[:6]:
                assert await history.save(session, turn("2", started_at=datetime.now(UTC)))
            await local.file.write(partial(outbox.drop_copies, keep=0))
            assert await local.file.read(kept) == [each.key for each in sessions[:6]]
            await asyncio.to_thread(server.recover)
            await recovered(history)
            for session in sessions[:6]:
                assert [each.id for each in await history.turns(session)] == ["1", "2"]
