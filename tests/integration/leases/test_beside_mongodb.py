"""Leases of one machine and of MongoDB together."""

from pathlib import Path

import pytest

from chatbot.errors import BusyError, HistoryError
from chatbot.leases.local import LocalLeases
from chatbot.leases.resilient import ResilientLeases
from tests.integration.leases.stores import ANN, both, local, mongodb, turn
from tests.servers.mongod import Mongod


async def test_leases_are_shared_between_processes(tmp_path: Path, mongod: Mongod) -> None:
    async with local(mongod, tmp_path) as one, local(mongod, tmp_path) as other:
        await one.lasting.claim(ANN, turn("one", "said in one process"))
        with pytest.raises(BusyError):
            await other.lasting.claim(ANN, turn("two"))
        shown = await other.lasting.running(ANN)
        assert shown is not None
        assert shown.answer == "said in one process"


@pytest.mark.parametrize("away_first", [False, True], ids=["goes away", "comes back"])
async def test_a_session_stays_with_its_turn_when_mongodb(
    mongod: Mongod, tmp_path: Path, away_first: bool
) -> None:
    away = [away_first]
    async with mongodb(mongod, tmp_path) as there, local(mongod, tmp_path) as here:
        leases = ResilientLeases(
            there.lasting, here.lasting, away=lambda: away[0], failed=lambda _: None
        )
        await leases.claim(ANN, turn("one"))
        away[0] = not away_first
        with pytest.raises(BusyError):
            await leases.claim(ANN, turn("two"))
        assert await leases.claim(ANN, turn("one")) is None
        with pytest.raises(BusyError):
            await leases.claim(ANN, turn("two"))
        await leases.release(ANN, "one")
        away[0] = False
        await there.lasting.release(ANN, "one")
        assert await leases.claim(ANN, turn("two")) is None


async def test_a_failure_is_told(tmp_path: Path) -> None:
    told: list[HistoryError] = []
    with Mongod() as server:
        async with mongodb(server, tmp_path) as there, local(server, tmp_path) as here:
            leases = ResilientLeases(
                there.lasting, here.lasting, away=lambda: bool(told), failed=told.append
            )
            server.pause()
            await leases.claim(ANN, turn("one"))
            assert len(told) == 1
            assert await leases.claim(ANN, turn("one")) is None
            server.resume()


async def test_a_lease_outlives_the_loss_of_mongodb(tmp_path: Path) -> None:
    with Mongod() as server:
        async with mongodb(server, tmp_path) as there, local(server, tmp_path) as here:
            leases = both(there.lasting, here.lasting)
            server.pause()
            assert await leases.claim(ANN, turn("one")) is None
            with pytest.raises(HistoryError):
                await there.lasting.claim(ANN, turn("one"))
            with pytest.raises(BusyError):
                await leases.claim(ANN, turn("two"))
            server.resume()


async def test_two_machines_have_one_turn_at_a_time(tmp_path: Path, mongod: Mongod) -> None:
    async with (
        mongodb(mongod, tmp_path) as shared,
        local(mongod, tmp_path / "here") as here,
        local(mongod, tmp_path / "there") as there,
    ):
        one, other = both(shared.lasting, here.lasting), both(shared.lasting, there.lasting)
        await one.claim(ANN, turn("one", "said here"))
        with pytest.raises(BusyError):
            await other.claim(ANN, turn("two"))
        assert await there.lasting.running(ANN) is None  # nor is it held where it was refused
        shown = await other.running(ANN)
        assert shown is not None
        assert shown.answer == "said here"
        await shared.brief.claim(ANN, turn("one", "said here"))  # it stands still
        left = await other.claim(ANN, turn("two"))
        assert left is not None
        assert left.answer == "said here"
        await other.release(ANN, left.id)
        assert await other.claim(ANN, turn("two")) is None
        with pytest.raises(BusyError):
            await one.claim(ANN, turn("one", "said here, too late"))


async def test_leases_that_have_no_folder_are_held_in_mongodb(
    tmp_path: Path, mongod: Mongod
) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    async with mongodb(mongod, tmp_path) as there:
        here = LocalLeases(tmp_path / "taken" / "leases.sqlite3")
        await here.open()
        assert await both(there.lasting, here).claim(ANN, turn("one")) is None
        with pytest.raises(BusyError):
            await there.lasting.claim(ANN, turn("two"))
        await here.close()
