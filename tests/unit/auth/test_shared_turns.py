"""The turns of users over several workers: one count, whatever becomes of a worker."""

import asyncio
import logging
import sqlite3
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from serving.http.quotas import TooManyError, UserLimits
from serving.http.shared_turns import FILE, SqliteUserTurns

LIMITS = UserLimits(per_minute=0, at_once=2)
WORKER = """
import asyncio, pathlib, sys
from serving.http.quotas import UserLimits
from serving.http.shared_turns import SqliteUserTurns

async def main():
    turns = SqliteUserTurns(pathlib.Path(sys.argv[1]), UserLimits(per_minute=0, at_once=2))
    await turns.begin("ann")
    await turns.begin("ann")
    print("begun", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


@asynccontextmanager
async def worker(folder: Path, limits: UserLimits = LIMITS) -> AsyncIterator[SqliteUserTurns]:
    turns = SqliteUserTurns(folder, limits)
    try:
        yield turns
    finally:
        await turns.close()


def counted(folder: Path) -> list[tuple[str, bool]]:
    """Return whose turns are in the file, and whether they run."""
    connection = sqlite3.connect(folder / FILE)
    try:
        return connection.execute(
            "SELECT user_id, worker IS NOT NULL FROM turns ORDER BY begun"
        ).fetchall()
    finally:
        connection.close()


async def test_workers_count_together(tmp_path: Path) -> None:
    async with worker(tmp_path) as one, worker(tmp_path) as other:
        first = await one.begin("ann")
        await other.begin("ann")
        for each in (one, other):
            with pytest.raises(TooManyError, match="2 answers running"):
                await each.begin("ann")
        await other.begin("bob")
        first()
        await one.begin("ann")  # its own thread has told the end before
        with pytest.raises(TooManyError, match="2 answers running"):
            await other.begin("ann")


async def test_a_minute_goes_over_all_workers(tmp_path: Path) -> None:
    limits = UserLimits(per_minute=3, at_once=0)
    async with worker(tmp_path, limits) as one, worker(tmp_path, limits) as other:
        for each in (one, other, one):
            (await each.begin("ann"))()
        with pytest.raises(TooManyError, match="3 questions a minute") as caught:
            await other.begin("ann")
        assert caught.value.retry_after == pytest.approx(60, abs=30)


async def test_turns_of_a_killed_worker_are_given_back(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, str(tmp_path), stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    async with worker(tmp_path) as turns:
        with pytest.raises(TooManyError, match="2 answers running"):
            await turns.begin("ann")
        process.kill()
        await process.wait()
        await turns.begin("ann")
        await turns.begin("ann")
        with pytest.raises(TooManyError, match="2 answers running"):
            await turns.begin("ann")


async def test_turns_of_a_worker_that_ended_in_order_are_given_back(tmp_path: Path) -> None:
    async with worker(tmp_path) as ends:
        release = await ends.begin("ann")
        await ends.begin("ann")
    release()
    async with worker(tmp_path) as goes_on:
        await goes_on.begin("ann")


async def test_a_question_that_is_taken_back_is_not_counted(tmp_path: Path) -> None:
    async with worker(tmp_path) as turns:
        await turns.begin("bob")
        holds = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        holds.execute("BEGIN IMMEDIATE")
        asking = asyncio.create_task(turns.begin("ann"))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        holds.execute("ROLLBACK")
        holds.close()
        await turns.begin("ann")
        await turns.begin("ann")


async def test_a_file_that_cannot_be_used_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "gone"
    async with worker(folder) as turns:
        with caplog.at_level(logging.WARNING):
            first = await turns.begin("ann")
            await turns.begin("ann")
        assert len(caplog.records) == 1
        with pytest.raises(TooManyError, match="2 answers running"):
            await turns.begin("ann")
        first()
        await turns.begin("ann")
        folder.mkdir()
        await turns.begin("ann")
        assert counted(folder) == [("ann", True)]


async def test_an_end_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    async with worker(tmp_path) as turns:
        release = await turns.begin("ann")
        holds = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        holds.execute("BEGIN IMMEDIATE")
        release()
        # It waits a second for the file, and so does this one, which gets it from nobody.
        alone = await turns.begin("ann")
        holds.execute("ROLLBACK")
        holds.close()
        await turns.begin("ann")
        await turns.begin("ann")
        with pytest.raises(TooManyError, match="2 answers running"):
            await turns.begin("ann")
        alone()


async def test_what_is_old_does_not_stay(tmp_path: Path) -> None:
    now = 1000.0
    turns = SqliteUserTurns(tmp_path, LIMITS, clock=lambda: now)
    for number in range(10):
        (await turns.begin(f"u{number}"))()
    now += 61
    await turns.begin("ann")
    await turns.close()
    assert counted(tmp_path) == [("ann", True)]
