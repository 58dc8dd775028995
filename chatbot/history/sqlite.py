"""A SQLite file that coroutines use: one connection in a thread of its own."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from chatbot.errors import HistoryError
from chatbot.history import rows
from chatbot.settings import MEMORY

Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], Result]

BUSY_SECONDS = 5.0
SCHEMA: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE sessions (
            key TEXT PRIMARY KEY,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            title TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            last_active INTEGER NOT NULL,
            last_seq INTEGER NOT NULL,
            cleared_seq INTEGER NOT NULL,
            cleared_at INTEGER
        ) STRICT
        """,
        "CREATE INDEX sessions_by_user ON sessions (user_id, last_active DESC)",
        "CREATE INDEX sessions_by_activity ON sessions (last_active)",
        """
        CREATE TABLE turns (
            key TEXT NOT NULL,
            id TEXT NOT NULL,
            seq INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            question TEXT NOT NULL,
            answer TEXT NOT NULL,
            status TEXT NOT NULL,
            record TEXT NOT NULL,
            PRIMARY KEY (key, id)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX turns_by_place ON turns (key, seq)",
        """
        CREATE TABLE outbox (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            key TEXT NOT NULL,
            user_id TEXT NOT NULL,
            session_id TEXT NOT NULL,
            action TEXT NOT NULL,
            turn_id TEXT,
            at INTEGER NOT NULL
        ) STRICT
        """,
        "CREATE INDEX outbox_by_session ON outbox (key, number)",
    ),
    (
        "ALTER TABLE outbox ADD COLUMN title TEXT",
        """
        CREATE TABLE words (
            key TEXT NOT NULL,
            id TEXT NOT NULL,
            word TEXT NOT NULL,
            PRIMARY KEY (key, id, word)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TRIGGER words_go_with_their_turn AFTER DELETE ON turns BEGIN
            DELETE FROM words WHERE key = old.key AND id = old.id;
        END
        """,
    ),
    (
        """
        CREATE TABLE images (
            key TEXT NOT NULL,
            name TEXT NOT NULL,
            user_id TEXT NOT NULL,
            data BLOB NOT NULL,
            PRIMARY KEY (key, name)
        ) STRICT
        """,
        "CREATE INDEX images_by_user ON images (user_id, name)",
        """
        CREATE TRIGGER images_go_with_their_session AFTER DELETE ON sessions BEGIN
            DELETE FROM images WHERE key = old.key;
        END
        """,
        """
        CREATE TRIGGER images_go_when_a_session_is_cleared
        AFTER UPDATE OF cleared_seq ON sessions BEGIN
            DELETE FROM images WHERE key = old.key;
        END
        """,
    ),
    (
        """
        CREATE TABLE farewells (
            user_id TEXT PRIMARY KEY,
            at INTEGER NOT NULL
        ) STRICT
        """,
    ),
    (
        "ALTER TABLE turns ADD COLUMN thumb TEXT",
        "ALTER TABLE turns ADD COLUMN rated_at INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX turns_by_rating ON turns (rated_at DESC, id) WHERE rated_at > 0",
    ),
)
ALL_FOUND = 5  # from this version on, turns are found by their words and by their rating


class LocalFileError(HistoryError):
    """The local file of the history cannot be used."""


class SqliteFile:
    """The history's tables in a file, or in memory for `:memory:`.

    Each piece of work is one function and one transaction, so that neither another coroutine
    nor a cancelled one ever stands in the middle of it. Several processes may use one file.
    What is written outlives the process; unless `durable`, the machine's crash may undo it,
    but no write waits for the disk.
    """

    def __init__(
        self, path: Path | str, *, busy_seconds: float = BUSY_SECONDS, durable: bool = True
    ) -> None:
        self.path = str(path)
        self._busy_seconds = busy_seconds
        self._durable = durable
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None

    async def read(self, work: Work[Result]) -> Result:
        """Return what `work` reads.

        Raises:
            LocalFileError: The file cannot be used. Says what to do.
        """
        return await self._run(lambda: self._transact("BEGIN", work))

    async def write(self, work: Work[Result]) -> Result:
        """Do `work` as a whole or not at all, and return what it returns.

        Raises:
            LocalFileError: The file cannot be used. Says what to do.
        """
        return await self._run(lambda: self._transact("BEGIN IMMEDIATE", work))

    async def erase(self, work: Work[Result]) -> Result:
        """Do `work`, which deletes, and leave none of the words in the file.

        Raises:
            LocalFileError: The file cannot be used. Says what to do.
        """
        result = await self.write(work)
        await self.forget()
        return result

    async def forget(self) -> None:
        """Leave none of the words in the file that were deleted before.

        Raises:
            LocalFileError: The file cannot be used. Says what to do.
        """
        await self._run(self._empty_log)

    @property
    def is_in_memory(self) -> bool:
        """Whether nothing of it is in a file."""
        return self.path == MEMORY

    def use_memory(self) -> None:
        """Keep everything in memory from now on. For a file that could not be opened."""
        self.path = MEMORY

    async def close(self) -> None:
        """Close the file and end its thread. Both begin again if it is used again."""
        if self._thread is not None:
            await self._run(self._close)
            self._thread.shutdown(wait=False)
            self._thread = None

    async def _run(self, work: Callable[[], Result]) -> Result:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="history")
        with _translated(self.path):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _transact(self, begin: str, work: Work[Result]) -> Result:
        connection = self._opened()
        connection.execute(begin)
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _empty_log(self) -> None:
        with suppress(sqlite3.OperationalError):  # another process does it at this moment
            self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self.path, self._busy_seconds, durable=self._durable)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _open(path: str, busy_seconds: float, *, durable: bool) -> sqlite3.Connection:
    if path != MEMORY:
        folder = Path(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        Path(path).touch(mode=0o600)  # what people said is for the owner of the process alone
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(SCHEMA):
        message = f"The history file {path} was written by a newer version of this program."
        raise LocalFileError(message)
    for statements in SCHEMA[version:]:
        for statement in statements:
            connection.execute(statement)
    if 0 < version < ALL_FOUND:
        rows.index(connection)
    connection.execute(f"PRAGMA user_version = {len(SCHEMA)}")
    connection.execute("COMMIT")


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            message = f"The history file {path} is held by another process: try again."
        else:
            message = (
                f"The history file {path} cannot be used ({error}): see to it that it can be "
                "written and that the disk has room, or set CHATBOT_DATA_DIR to another folder."
            )
        raise LocalFileError(message) from error
    except sqlite3.DatabaseError as error:
        message = f"The history file {path} is damaged ({error}): move it away to start anew."
        raise LocalFileError(message) from error
    except OSError as error:
        message = (
            f"The history file {path} cannot be made ({error.strerror}): set CHATBOT_DATA_DIR "
            "to a folder that can be written."
        )
        raise LocalFileError(message) from error
