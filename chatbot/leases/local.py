"""Leases between the processes of one machine, in a SQLite file or in memory."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from chatbot.domain import Session, Turn
from chatbot.errors import HistoryError
from chatbot.history.sqlite import SqliteFile
from chatbot.leases.records import LEASE_SECONDS, busy, read, written

_TABLE = """
    CREATE TABLE IF NOT EXISTS leases (
        key TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        turn TEXT NOT NULL,
        expires_at REAL NOT NULL
    ) STRICT
"""
_TAKE = """
    INSERT INTO leases (key, user_id, session_id, turn_id, turn, expires_at)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET
        turn_id = excluded.turn_id, turn = excluded.turn, expires_at = excluded.expires_at
"""
_RENEW = "UPDATE leases SET turn = ?, expires_at = ? WHERE key = ? AND turn_id = ?"
_RELEASE = "DELETE FROM leases WHERE key = ? AND turn_id = ?"
_ABANDONED = """
    SELECT user_id, session_id, turn FROM leases WHERE expires_at <= ?
    ORDER BY expires_at LIMIT ?
"""


class LocalLeases:
    """Keeps leases in the SQLite file at `path`, which several processes may share."""

    def __init__(self, path: Path | str, *, seconds: float = LEASE_SECONDS) -> None:
        self._file = SqliteFile(path)
        self._seconds = seconds
        self._made = False

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """See `SessionLeases.claim`."""
        await self._make()
        take = partial(_claim, session=session, turn=turn, seconds=self._seconds)
        return await self._file.write(take)

    async def renew(self, session: Session, turn: Turn) -> bool:
        """See `SessionLeases.renew`."""
        await self._make()
        values = (written(turn), time.time() + self._seconds, session.key, turn.id)
        return await self._file.write(lambda file: file.execute(_RENEW, values).rowcount > 0)

    async def release(self, session: Session, turn_id: str) -> None:
        """See `SessionLeases.release`."""
        await self._make()
        values = (session.key, turn_id)
        await self._file.write(lambda file: file.execute(_RELEASE, values).rowcount)

    async def running(self, session: Session) -> Turn | None:
        """See `SessionLeases.running`."""
        await self._make()
        where = "SELECT turn FROM leases WHERE key = ? AND expires_at > ?"
        values = (session.key, time.time())
        row = await self._file.read(lambda file: file.execute(where, values).fetchone())
        return read(row[0]) if row else None

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """See `SessionLeases.abandoned`."""
        await self._make()
        values = (time.time(), limit)
        rows = await self._file.read(lambda file: file.execute(_ABANDONED, values).fetchall())
        return [
            (Session(user_id=user, session_id=session), read(turn))
            for user, session, turn in rows
        ]

    async def close(self) -> None:
        """Close the file."""
        with suppress(HistoryError):
            await self._file.close()

    async def _make(self) -> None:
        if not self._made:
            await self._file.write(lambda file: file.execute(_TABLE).rowcount)
            self._made = True


def _claim(
    file: sqlite3.Connection, *, session: Session, turn: Turn, seconds: float
) -> Turn | None:
    now = time.time()
    where = "SELECT turn_id, turn, expires_at FROM leases WHERE key = ?"
    row = file.execute(where, (session.key,)).fetchone()
    if row and row[0] != turn.id and row[2] > now:
        raise busy()
    identity = (session.key, session.user_id, session.session_id)
    file.execute(_TAKE, (*identity, turn.id, written(turn), now + seconds))
    return read(row[1]) if row and row[0] != turn.id else None
