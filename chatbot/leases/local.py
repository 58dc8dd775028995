"""Leases between the processes of one machine, in a SQLite file or in memory."""

import logging
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from chatbot.domain import Session, Turn
from chatbot.errors import HistoryError, StoppedError
from chatbot.history.sqlite import SqliteFile
from chatbot.leases.holders import has_died, this_process
from chatbot.leases.records import LEASE_SECONDS, busy, read, written

_log = logging.getLogger(__name__)

_TABLE = """
    CREATE TABLE IF NOT EXISTS leases (
        key TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        turn TEXT NOT NULL,
        expires_at REAL NOT NULL,
        holder TEXT NOT NULL DEFAULT ''
    ) STRICT
"""
_HAS_HOLDER = "SELECT 1 FROM pragma_table_info('leases') WHERE name = 'holder'"
_ADD_HOLDER = "ALTER TABLE leases ADD COLUMN holder TEXT NOT NULL DEFAULT ''"
_STOPS = """
    CREATE TABLE IF NOT EXISTS stops (key TEXT PRIMARY KEY, turn_id TEXT NOT NULL) STRICT
"""
_ASK_TO_STOP = """
    INSERT OR REPLACE INTO stops (key, turn_id)
    SELECT key, turn_id FROM leases WHERE key = ? AND expires_at > ?
"""
_STOPPED = "DELETE FROM stops WHERE key = ? AND turn_id = ?"
_HOLD = """
    INSERT INTO leases (key, user_id, session_id, turn_id, turn, expires_at, holder)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET
        turn = excluded.turn, expires_at = excluded.expires_at, holder = excluded.holder
    WHERE turn_id = excluded.turn_id
"""
_RELEASE = "DELETE FROM leases WHERE key = ? AND turn_id = ?"
_RUNNING = "SELECT turn, holder FROM leases WHERE key = ? AND expires_at > ?"
_ABANDONED = """
    SELECT user_id, session_id, turn FROM leases WHERE expires_at <= ?
    ORDER BY expires_at LIMIT ?
"""


class LocalLeases:
    """Keeps leases in the SQLite file at `path`, which several processes may share.

    One whose process has died is free at once, where that can be told.
    """

    def __init__(self, path: Path | str, *, seconds: float = LEASE_SECONDS) -> None:
        self._file = SqliteFile(path, durable=False)  # nobody answers after the machine's crash
        self._seconds = seconds
        self._made = False
        self._has_released = False

    async def open(self) -> None:
        """Open the file, or memory in its place where there can be none.

        For leases that have another store beside them, which goes across processes.
        """
        try:
            await self._make()
        except HistoryError as error:
            _log.warning("%s Until then, leases are of this process alone.", error.message)
            self._file.use_memory()

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """See `SessionLeases.claim`."""
        await self._make()
        claim = partial(_claim, session=session, turn=turn, seconds=self._seconds)
        return await self._file.write(claim)

    async def ask_to_stop(self, session: Session) -> bool:
        """See `SessionLeases.ask_to_stop`."""
        await self._make()
        values = (session.key, time.time())
        asked = await self._file.write(lambda file: file.execute(_ASK_TO_STOP, values).rowcount)
        return asked > 0

    async def release(self, session: Session, turn_id: str) -> None:
        """See `SessionLeases.release`."""
        await self._make()
        values = (session.key, turn_id)
        await self._file.write(lambda file: file.execute(_RELEASE, values).rowcount)
        self._has_released = True

    async def running(self, session: Session) -> Turn | None:
        """See `SessionLeases.running`."""
        await self._make()
        return await self._file.read(partial(_running, session=session))

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """See `SessionLeases.abandoned`. What was released before leaves no words behind."""
        await self._make()
        if self._has_released:
            self._has_released = False
            await self._file.forget()
        values = (time.time(), limit)
        rows = await self._file.read(lambda file: file.execute(_ABANDONED, values).fetchall())
        return [
            (Session(user_id=user_id, session_id=session_id), turn)
            for user_id, session_id, text in rows
            if (turn := read(text)) is not None
        ]

    async def close(self) -> None:
        """Close the file."""
        with suppress(HistoryError):
            await self._file.close()

    async def _make(self) -> None:
        if not self._made:
            await self._file.write(_make_tables)
            self._made = True


def _make_tables(file: sqlite3.Connection) -> None:
    file.execute(_TABLE)
    if file.execute(_HAS_HOLDER).fetchone() is None:  # of an earlier version
        file.execute(_ADD_HOLDER)
    file.execute(_STOPS)


def _running(file: sqlite3.Connection, *, session: Session) -> Turn | None:
    row = file.execute(_RUNNING, (session.key, time.time())).fetchone()
    return None if row is None or has_died(row[1]) else read(row[0])


def _claim(
    file: sqlite3.Connection, *, session: Session, turn: Turn, seconds: float
) -> Turn | None:
    now = time.time()
    identity = (session.key, session.user_id, session.session_id, turn.id)
    lease = (*identity, written(turn), now + seconds, this_process())
    if file.execute(_HOLD, lease).rowcount:
        if file.execute(_STOPPED, (session.key, turn.id)).rowcount:
            raise StoppedError
        return None
    where = "SELECT turn_id, turn, expires_at, holder FROM leases WHERE key = ?"
    turn_id, text, expires_at, holder = file.execute(where, (session.key,)).fetchone()
    if expires_at > now and not has_died(holder):
        raise busy()
    if (left := read(text)) is None:
        file.execute(_RELEASE, (session.key, turn_id))
        file.execute(_HOLD, lease)
    return left
