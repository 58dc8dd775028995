"""A local file that is damaged, unwritable, from the future, or shared."""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chatbot.domain import Session
from chatbot.errors import HistoryError
from chatbot.history.entries import microseconds
from chatbot.history.local import LocalChatHistory
from chatbot.history.sqlite import SCHEMA
from tests.integration.history.stores import turn

SESSION = Session(session_id="s")


def folder_in_the_way(path: Path) -> None:
    path.mkdir()


def file_in_the_way(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("a file where the folder should be")


def not_a_database(path: Path) -> None:
    path.write_bytes(b"\0not a database" * 1000)


def from_the_future(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(folder_in_the_way, "CHATBOT_DATA_DIR", id="a folder has its name"),
        pytest.param(file_in_the_way, "CHATBOT_DATA_DIR", id="its folder is a file"),
        pytest.param(not_a_database, "damaged", id="not a database"),
        pytest.param(from_the_future, "newer version", id="from the future"),
    ],
)
async def test_a_file_that_cannot_be_used_is_named_with_what_to_do(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "data" / "history.sqlite3"
    path.parent.mkdir()
    spoil(path)
    history = LocalChatHistory(path)
    with pytest.raises(HistoryError, match=said) as raised:
        await history.save(SESSION, turn("1"))
    assert str(path) in raised.value.message
    assert str(path) in await history.check()
    await history.close()


async def test_a_file_that_another_process_holds_is_given_up_after_a_while(
    tmp_path: Path,
) -> None:
    path = tmp_path / "history.sqlite3"
    async with LocalChatHistory(path, busy_seconds=0.1) as history:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HistoryError, match="another process"):
            await history.save(SESSION, turn("1"))
        holder.close()
        assert await history.save(SESSION, turn("1")) == ""


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.sqlite3"
    async with LocalChatHistory(path) as history:
        await history.save(SESSION, turn("1"))
        assert path.stat().st_mode & 0o077 == 0


async def test_a_history_outlives_its_process_and_may_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    async with LocalChatHistory(path) as history:
        await history.save(SESSION, turn("1"))
    async with LocalChatHistory(path) as history:
        assert await history.find(SESSION, "1") == turn("1")
        await history.close()
        assert await history.find(SESSION, "1") == turn("1")


async def test_an_expired_session_is_not_shown_and_begins_anew(tmp_path: Path) -> None:
    two_days_ago = microseconds(datetime.now(UTC) - timedelta(days=2))
    async with LocalChatHistory(tmp_path / "history", ttl_days=1) as history:
        await history.save(SESSION, turn("old"))
        assert len((await history.load(SESSION, limit=9)).turns) == 1
        await history.file.write(
            lambda file: file.execute("UPDATE sessions SET last_active = ?", [two_days_ago])
        )
        assert (await history.load(SESSION, limit=9)).turns == ()
        assert await history.find(SESSION, "old") is None
        assert await history.sessions("anonymous", limit=9) == ()
        assert await history.clear(SESSION) == 0
        await history.save(SESSION, turn("new"))
        assert [t.id for t in (await history.load(SESSION, limit=9)).turns] == ["new"]


async def test_a_cancelled_save_leaves_nothing_half_done(tmp_path: Path) -> None:
    async with LocalChatHistory(tmp_path / "history") as history:
        tasks = [asyncio.create_task(history.save(SESSION, turn(str(n)))) for n in range(20)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        kept = {t.id for t in (await history.load(SESSION, limit=99)).turns}
        assert kept >= {str(n) for n in range(1, 20, 2)}


WRITER = """
import asyncio, sys
from datetime import UTC, datetime, timedelta
from chatbot.domain import Session, Turn
from chatbot.history.entries import microseconds
from chatbot.history.local import LocalChatHistory
from chatbot.history.sqlite import SCHEMA

async def main(path, name):
    async with LocalChatHistory(path) as history:
        for number in range(40):
            turn = Turn(id=f"{name}-{number}", question="q", started_at=datetime.now(UTC))
            await history.save(Session(session_id="s"), turn)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_several_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), name, env=environment
        )
        for name in ("a", "b", "c")
    ]
    assert [await writer.wait() for writer in writers] == [0, 0, 0]
    async with LocalChatHistory(path) as history:
        ids = [t.id for t in (await history.load(SESSION, limit=999)).turns]
    for name in ("a", "b", "c"):
        mine = [i for i in ids if i.startswith(name)]
        assert mine == [f"{name}-{number}" for number in range(40)]
    assert len(ids) == 120


async def test_a_file_of_the_first_version_is_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    connection = sqlite3.connect(path)
    for statement in SCHEMA[0]:
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")
    connection.execute(
        "INSERT INTO sessions VALUES ('s', 'anonymous', 's', 'title', 0, ?, 2, 0, NULL)",
        [microseconds(datetime.now(UTC))],
    )
    connection.execute(
        "INSERT INTO turns VALUES ('s', '1', 2, 0, '瓦尔登湖的风景', '', 'complete', '{}')"
    )
    connection.commit()
    connection.close()
    async with LocalChatHistory(path) as history:
        (match,) = await history.search("anonymous", "风景", limit=9)
        assert match.turn.id == "1"
        await history.save(SESSION, turn("2"))
        assert [t.id for t in await history.turns(SESSION)] == ["1", "2"]


@pytest.mark.parametrize("everything", [False, True], ids=["the session", "all of its user"])
async def test_no_word_of_what_is_deleted_is_left_in_the_file(
    tmp_path: Path, *, everything: bool
) -> None:
    def found(word: bytes) -> bool:
        return any(word in file.read_bytes() for file in tmp_path.iterdir())

    async with LocalChatHistory(tmp_path / "history.sqlite3") as history:
        await history.save(Session(session_id="t", user_id="bob"), turn("kept"))
        for number in range(30):
            await history.save(SESSION, turn(str(number), answer=f"xyzzy {number} " * 300))
        assert found(b"xyzzy")
        if everything:
            await history.forget_user(SESSION.user_id)
        else:
            await history.clear(SESSION)
        assert not found(b"xyzzy")
        assert found(b"question kept")


async def test_what_expires_while_the_file_is_open_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    async with LocalChatHistory(path, ttl_days=1, tidy_every=timedelta()) as history:
        await history.save(SESSION, turn("1"))
        old = microseconds(datetime.now(UTC) - timedelta(days=2))
        await history.file.write(
            lambda file: file.execute("UPDATE sessions SET last_active = ?", (old,)).rowcount
        )
        assert await rows_of(history) == 1
        await history.tidy()
        assert await rows_of(history) == 0


async def rows_of(history: LocalChatHistory) -> int:
    def count(file: sqlite3.Connection) -> int:
        return int(file.execute("SELECT count(*) FROM turns").fetchone()[0])

    return await history.file.read(count)
