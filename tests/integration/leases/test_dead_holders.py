"""A process that was killed: its session is free at once for the others of its machine."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from chatbot.errors import BusyError
from chatbot.leases.holders import has_died, this_process
from tests.integration.cli.terminal import environment, run
from tests.integration.leases.stores import ANN, LASTING, in_file, turn
from tests.servers.model import ModelServer, answer

HOLD = """
import asyncio, sys, time
from pathlib import Path
from tests.integration.leases.stores import ANN, LASTING, in_file, turn

async def main():
    await in_file(Path(sys.argv[1]), LASTING).claim(ANN, turn("dead", "so far"))
    print("held", flush=True)
    time.sleep(600)

asyncio.run(main())
"""
LONG = [f"word{number} " for number in range(1000)]


def holding(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds the session of Ann, and return when it does."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")  # noqa: S603 - our own program
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


async def test_session_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    process = holding(tmp_path)
    leases = in_file(tmp_path, LASTING)
    try:
        with pytest.raises(BusyError):
            await leases.claim(ANN, turn("next"))
        running = await leases.running(ANN)
        assert running is not None
        assert running.answer == "so far"
    finally:
        kill(process)

    assert await leases.running(ANN) is None
    left = await leases.claim(ANN, turn("next"))
    assert left is not None
    assert (left.id, left.answer, left.status) == ("dead", "so far", "stopped")
    await leases.release(ANN, left.id)
    assert await leases.claim(ANN, turn("next")) is None
    await leases.close()


@pytest.mark.parametrize(
    "holder",
    [
        pytest.param("", id="not known"),
        pytest.param("another-start/pid:[1]/{dead}", id="another start, or another machine"),
        pytest.param("{boot}/pid:[1]/{dead}", id="another namespace, as a container's"),
        pytest.param("{place}/nonsense", id="no number"),
        pytest.param("{place}/{own}", id="this process"),
    ],
)
async def test_who_is_not_certainly_dead_holds_on(tmp_path: Path, holder: str) -> None:
    process = holding(tmp_path)
    kill(process)
    place, _, own = this_process().rpartition("/")
    boot, dead = place.partition("/")[0], f"{process.pid}@1"
    named = holder.format(place=place, boot=boot, own=own, dead=dead)
    file = tmp_path / "leases.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE leases SET holder = ?", (named,))
    leases = in_file(tmp_path, LASTING)

    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("next"))
    assert await leases.running(ANN) is not None
    await leases.close()


def test_number_that_was_given_again_is_another_process() -> None:
    before, _, _ = this_process().partition("@")
    assert has_died(f"{before}@1")
    assert not has_died(f"/{before}@1")
    assert not has_died(this_process())


async def test_file_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "leases.sqlite3", isolation_level=None)) as old:
        columns = ("key", "user_id", "session_id", "turn_id", "turn")
        texts = ", ".join(f"{name} TEXT NOT NULL" for name in columns)
        old.execute(f"CREATE TABLE leases ({texts}, expires_at REAL NOT NULL) STRICT")
        old.execute("CREATE UNIQUE INDEX leases_by_key ON leases (key)")
        held = (ANN.key, ANN.user_id, ANN.session_id, "old", "{}", time.time() + LASTING)
        old.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?)", held)
    leases = in_file(tmp_path, LASTING)
    with pytest.raises(BusyError):
        await leases.claim(ANN, turn("next"))
    await leases.release(ANN, "old")
    assert await leases.claim(ANN, turn("next")) is None
    await leases.close()


def test_next_question_does_not_wait_for_a_killed_one(tmp_path: Path) -> None:
    with ModelServer([answer(LONG, delay=0.05), answer("Thanks.")]) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        ask = ["ask", "--route", "general_chat"]
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "serving.cli", *ask, "First?"],
            env=environment(tmp_path, settings),
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        assert process.stdout is not None
        said = ""
        while "word40 " not in said:  # by then the lease has the first of them
            said += process.stdout.read(20)
        kill(process)
        result = run(tmp_path, *ask, "Second?", settings=settings)
    assert result.code == 0
    assert "Thanks." in result.out
    shown = run(tmp_path, "sessions", "show", "default")
    assert (
        shown.out.index("word0 word1")
        < shown.out.index("(stopped)")
        < shown.out.index("Second?")
    )
