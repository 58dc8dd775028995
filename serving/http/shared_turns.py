"""The turns of each user over all workers of a server, in a file that they share."""

import asyncio
import fcntl
import logging
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

from chatbot.settings import Settings
from serving.http.quotas import (
    WINDOW_SECONDS,
    InMemoryUserTurns,
    Quotas,
    Release,
    TooManyError,
    UserLimits,
)

logger = logging.getLogger(__name__)

FILE = "turns.sqlite3"
BUSY_SECONDS = 1.0
WAIT_SECONDS = 2.0

_OPENING = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = OFF",  # no worker outlives the machine's crash
    """
    CREATE TABLE IF NOT EXISTS turns (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL, begun REAL NOT NULL, worker TEXT
    ) STRICT
    """,
    "CREATE INDEX IF NOT EXISTS of_user ON turns (user_id)",
    "CREATE INDEX IF NOT EXISTS running ON turns (worker) WHERE worker IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS ended ON turns (begun) WHERE worker IS NULL",
)
_FORGET = "DELETE FROM turns WHERE worker IS NULL AND begun <= ?"
_COUNT = """
    SELECT count(worker), count(*) FILTER (WHERE begun > ?2),
           coalesce(min(begun) FILTER (WHERE begun > ?2), 0)
    FROM turns WHERE user_id = ?1
"""
_BEGIN = "INSERT INTO turns (id, user_id, begun, worker) VALUES (?, ?, ?, ?)"
_END = "UPDATE turns SET worker = NULL WHERE id = ?"
_WORKERS = "SELECT DISTINCT worker FROM turns WHERE worker IS NOT NULL"
_GIVE_BACK = "UPDATE turns SET worker = NULL WHERE worker = ?"


class SqliteUserTurns:
    """Counts the turns of all workers in a file of `folder`, which is theirs alone.

    Each worker holds a lock for as long as it lives. Where a user has too many turns, those of
    workers without one are given back first. While the file cannot be used, the worker counts
    for itself.
    """

    def __init__(
        self,
        folder: Path,
        limits: UserLimits,
        *,
        clock: Callable[[], float] = time.monotonic,  # one for all processes of a machine
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._clock = clock
        self._worker = f"worker-{uuid.uuid4().hex}"
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="turns")
        self._connection: sqlite3.Connection | None = None
        self._open = ExitStack()
        self._ended: list[tuple[str]] = []  # and not in the file yet
        self._alone = InMemoryUserTurns(limits, clock=clock)
        self._is_alone = False

    async def begin(self, user_id: str) -> Release:
        """See `UserTurns.begin`."""
        turn_id = uuid.uuid4().hex
        counting = self._thread.submit(self._begin, turn_id, user_id)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.wrap_future(counting)
        except (OSError, sqlite3.Error) as error:
            self._end(turn_id)  # it may have been counted all the same
            if not self._is_alone:
                logger.warning("each worker counts the turns of users for itself: %s", error)
            self._is_alone = True
            return await self._alone.begin(user_id)
        except asyncio.CancelledError:
            self._end(turn_id)
            raise
        self._is_alone = False
        return partial(self._end, turn_id)

    async def close(self) -> None:
        """Close the file, and let go of what this worker still has."""
        self._thread.submit(self._close)
        await asyncio.to_thread(self._thread.shutdown)

    def _end(self, turn_id: str) -> None:
        with suppress(RuntimeError):  # after the close nothing here runs any more
            self._thread.submit(self._note_end, turn_id)

    def _note_end(self, turn_id: str) -> None:
        self._ended.append((turn_id,))
        with suppress(OSError, sqlite3.Error), self._transaction():  # the next one tells it
            pass

    def _begin(self, turn_id: str, user_id: str) -> None:
        now = self._clock()
        with self._transaction() as connection:
            connection.execute(_FORGET, (now - WINDOW_SECONDS,))
            try:
                self._check(connection, user_id, now)
            except TooManyError:
                if not self._give_back(connection):
                    raise
                self._check(connection, user_id, now)
            connection.execute(_BEGIN, (turn_id, user_id, now, self._worker))

    def _check(self, connection: sqlite3.Connection, user_id: str, now: float) -> None:
        of_user = user_id, now - WINDOW_SECONDS
        running, begun, first = connection.execute(_COUNT, of_user).fetchone()
        self._limits.check(running=running, begun=begun, wait=first + WINDOW_SECONDS - now)

    def _give_back(self, connection: sqlite3.Connection) -> int:
        """End the turns of workers that died, and return how many those were."""
        workers = [name for (name,) in connection.execute(_WORKERS)]
        dead = [(name,) for name in workers if not self._lives(name)]
        return connection.executemany(_GIVE_BACK, dead).rowcount if dead else 0

    def _lives(self, worker: str) -> bool:
        with (self._folder / worker).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._opened()
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(_END, self._ended)
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._ended.clear()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            with ExitStack() as stack:
                lock = stack.enter_context((self._folder / self._worker).open("wb"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                connection = sqlite3.connect(
                    self._folder / FILE,
                    timeout=BUSY_SECONDS,
                    isolation_level=None,
                    check_same_thread=False,
                )
                stack.enter_context(closing(connection))
                for statement in _OPENING:
                    connection.execute(statement)
                self._open = stack.pop_all()
                self._connection = connection
        return self._connection

    def _close(self) -> None:
        self._open.close()


@asynccontextmanager
async def open_shared_quotas(folder: Path, settings: Settings) -> AsyncIterator[Quotas]:
    """Count the turns of users together with the other workers over `folder`."""
    users = SqliteUserTurns(folder, UserLimits.of(settings))
    try:
        yield Quotas(users, open_streams=settings.open_streams)
    finally:
        await users.close()
