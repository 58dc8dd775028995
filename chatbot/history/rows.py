"""Turns as rows of SQLite: plain functions, each inside a transaction."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from chatbot.domain import Session, Turn
from chatbot.history.entries import (
    Entry,
    began_before,
    even,
    microseconds,
    moment,
    next_seq,
    rating_of,
    read_record,
    supersedes,
    title_of,
    write_record,
)
from chatbot.history.search_words import indexed

TURN = "id, seq, started_at, question, answer, status, record"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """What a save did: the turn's entry, if it is kept, and whether anything changed."""

    entry: Entry | None
    changed: bool


def put(
    connection: sqlite3.Connection,
    session: Session,
    turn: Turn,
    *,
    now: datetime,
    life: timedelta,
) -> Stored:
    """Keep a turn at the end of its session, unless the session was cleared meanwhile."""
    last_seq, cleared_at = open_session(connection, session, now=now, life=life)
    if began_before(turn, cleared_at):
        return Stored(entry=None, changed=False)
    old = get(connection, session.key, turn.id)
    if old is not None and not supersedes(turn, old.turn):
        return Stored(entry=old, changed=False)
    entry = Entry(turn=turn, seq=old.seq if old else next_seq(turn, last_seq))
    write(connection, session.key, [entry])
    connection.execute(
        "UPDATE sessions SET last_seq = max(last_seq, ?), last_active = ?,"
        " title = iif(title = '', ?, title) WHERE key = ?",
        (entry.seq, microseconds(now), title_of(turn.question), session.key),
    )
    return Stored(entry=entry, changed=True)


def write(connection: sqlite3.Connection, key: str, entries: Iterable[Entry]) -> None:
    """Write the turns as they are, in the place of those with the same ids."""
    entries = list(entries)
    connection.executemany(
        "DELETE FROM turns WHERE key = ? AND id = ?",
        [(key, entry.turn.id) for entry in entries],
    )
    connection.executemany(
        f"INSERT INTO turns (key, {TURN}, thumb, rated_at)"  # noqa: S608 - a constant
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                key,
                entry.turn.id,
                entry.seq,
                microseconds(entry.turn.started_at),
                entry.turn.question,
                entry.turn.answer,
                entry.turn.status,
                write_record(entry.turn.record),
                *rating_of(entry.turn),
            )
            for entry in entries
        ],
    )
    connection.executemany(
        "INSERT INTO words (key, id, word) VALUES (?, ?, ?)",
        [(key, entry.turn.id, word) for entry in entries for word in indexed(entry.turn)],
    )


def index(connection: sqlite3.Connection) -> None:
    """Make every turn one that can be found."""
    for row in connection.execute(f"SELECT key, {TURN} FROM turns").fetchall():  # noqa: S608 - a constant
        write(connection, row[0], [entry_of(row[1:])])


def newest(connection: sqlite3.Connection, key: str, *, limit: int) -> list[Entry]:
    """Return the newest turns of a session, oldest first, whether it has expired or not."""
    rows = connection.execute(
        f"SELECT {TURN} FROM turns WHERE key = ? ORDER BY seq DESC LIMIT ?",  # noqa: S608 - a constant
        (key, limit),
    )
    return [entry_of(row) for row in rows][::-1]


def marks(
    connection: sqlite3.Connection, key: str, *, limit: int
) -> list[tuple[str, int, str]]:
    """Return id, place and status of the newest turns of a session, oldest first."""
    found = connection.execute(
        "SELECT id, seq, status FROM turns WHERE key = ? ORDER BY seq DESC LIMIT ?",
        (key, limit),
    )
    return found.fetchall()[::-1]


def get(connection: sqlite3.Connection, key: str, turn_id: str) -> Entry | None:
    """Return one turn of a session, whether it has expired or not."""
    row = connection.execute(
        f"SELECT {TURN} FROM turns WHERE key = ? AND id = ?",  # noqa: S608 - a constant
        (key, turn_id),
    ).fetchone()
    return None if row is None else entry_of(row)


def is_live(connection: sqlite3.Connection, key: str, *, since: datetime) -> bool:
    """Tell whether the session exists and was active after that moment."""
    row = connection.execute(
        "SELECT 1 FROM sessions WHERE key = ? AND last_active > ?", (key, microseconds(since))
    ).fetchone()
    return row is not None


def open_session(
    connection: sqlite3.Connection, session: Session, *, now: datetime, life: timedelta
) -> tuple[int, datetime | None]:
    """Make the session if it is new, empty it if it has expired; return where it stands.

    A new one counts as cleared when all of its user was.
    """
    if not is_live(connection, session.key, since=now - life):
        farewell = _farewell(connection, session.user_id)
        floor = even(max(microseconds(now - life), farewell or 0))
        connection.execute("DELETE FROM turns WHERE key = ?", (session.key,))
        connection.execute(
            "INSERT INTO sessions VALUES"
            " (:key, :user, :session, '', :now, :now, :floor, :floor, :cleared)"
            " ON CONFLICT (key) DO UPDATE SET title = '', created_at = :now,"
            " last_active = :now, last_seq = max(last_seq, :floor), cleared_seq = last_seq",
            {
                "key": session.key,
                "user": session.user_id,
                "session": session.session_id,
                "now": microseconds(now),
                "floor": floor,
                "cleared": farewell,
            },
        )
    last_seq, cleared_at = connection.execute(
        "SELECT last_seq, cleared_at FROM sessions WHERE key = ?", (session.key,)
    ).fetchone()
    return last_seq, None if cleared_at is None else moment(cleared_at)


def _farewell(connection: sqlite3.Connection, user_id: str) -> int | None:
    """Return the microsecond at which all sessions of the user were cleared."""
    row = connection.execute(
        "SELECT at FROM farewells WHERE user_id = ?", (user_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def entry_of(row: Sequence[Any]) -> Entry:
    """Return the turn in a row of the columns `TURN`."""
    turn_id, seq, started_at, question, answer, status, record = row
    turn = Turn(
        id=turn_id,
        question=question,
        answer=answer,
        started_at=moment(started_at),
        status=status,
        record=read_record(record),
    )
    return Entry(turn=turn, seq=seq)
