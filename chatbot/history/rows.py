"""Sessions and turns as rows of SQLite: plain functions, each inside a transaction."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from chatbot.domain import Session, SessionSummary, Turn
from chatbot.history.entries import (
    Entry,
    began_before,
    even,
    microseconds,
    moment,
    next_seq,
    read_record,
    supersedes,
    title_of,
    write_record,
)

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
    connection.executemany(
        f"INSERT OR REPLACE INTO turns (key, {TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
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
            )
            for entry in entries
        ],
    )


def newest(connection: sqlite3.Connection, key: str, *, limit: int) -> list[Entry]:
    """Return the newest turns of a session, oldest first, whether it has expired or not."""
    rows = connection.execute(
        f"SELECT {TURN} FROM turns WHERE key = ? ORDER BY seq DESC LIMIT ?",  # noqa: S608 - a constant
        (key, limit),
    )
    return [_entry(row) for row in rows][::-1]


def get(connection: sqlite3.Connection, key: str, turn_id: str) -> Entry | None:
    """Return one turn of a session, whether it has expired or not."""
    row = connection.execute(
        f"SELECT {TURN} FROM turns WHERE key = ? AND id = ?",  # noqa: S608 - a constant
        (key, turn_id),
    ).fetchone()
    return None if row is None else _entry(row)


def is_live(connection: sqlite3.Connection, key: str, *, since: datetime) -> bool:
    """Tell whether the session exists and was active after that moment."""
    row = connection.execute(
        "SELECT 1 FROM sessions WHERE key = ? AND last_active > ?", (key, microseconds(since))
    ).fetchone()
    return row is not None


def clear(
    connection: sqlite3.Connection, session: Session, *, now: datetime, life: timedelta
) -> int:
    """Forget the turns of a session. Its row stays, without words, until it expires."""
    turns = 0
    if is_live(connection, session.key, since=now - life):
        (turns,) = connection.execute(
            "SELECT count(*) FROM turns WHERE key = ?", (session.key,)
        ).fetchone()
    open_session(connection, session, now=now, life=life)
    at = microseconds(now)
    connection.execute("DELETE FROM turns WHERE key = ?", (session.key,))
    connection.execute(
        "UPDATE sessions SET title = '', last_active = ?1, cleared_at = ?1,"
        " cleared_seq = max(last_seq, ?2), last_seq = max(last_seq, ?2) WHERE key = ?3",
        (at, even(at), session.key),
    )
    return int(turns)


def summaries(
    connection: sqlite3.Connection, user_id: str, *, since: datetime, limit: int
) -> Sequence[SessionSummary]:
    """Return the user's sessions, the most recently active first."""
    rows = connection.execute(
        "SELECT session_id, title, last_active,"
        " (SELECT count(*) FROM turns WHERE turns.key = sessions.key)"
        " FROM sessions WHERE user_id = ? AND last_active > ? AND title != ''"
        " ORDER BY last_active DESC, key LIMIT ?",
        (user_id, microseconds(since), limit),
    )
    return tuple(
        SessionSummary(
            session_id=session_id, title=title, last_active=moment(last_active), turns=turns
        )
        for session_id, title, last_active, turns in rows
    )


def probe(connection: sqlite3.Connection) -> None:
    """Read from the tables."""
    connection.execute("SELECT key FROM sessions LIMIT 1").fetchone()


def remove_expired(connection: sqlite3.Connection, *, since: datetime) -> None:
    """Remove the sessions without activity since then, except what must still be replayed."""
    connection.execute(
        "DELETE FROM sessions WHERE last_active <= ? AND key NOT IN (SELECT key FROM outbox)",
        (microseconds(since),),
    )
    connection.execute("DELETE FROM turns WHERE key NOT IN (SELECT key FROM sessions)")


def open_session(
    connection: sqlite3.Connection, session: Session, *, now: datetime, life: timedelta
) -> tuple[int, datetime | None]:
    """Make the session if it is new, empty it if it has expired; return where it stands."""
    floor = even(microseconds(now - life))
    if not is_live(connection, session.key, since=now - life):
        connection.execute("DELETE FROM turns WHERE key = ?", (session.key,))
        connection.execute(
            "INSERT INTO sessions VALUES (?1, ?2, ?3, '', ?4, ?4, ?5, ?5, NULL)"
            " ON CONFLICT (key) DO UPDATE SET title = '', created_at = ?4, last_active = ?4,"
            " last_seq = max(last_seq, ?5), cleared_seq = last_seq",
            (session.key, session.user_id, session.session_id, microseconds(now), floor),
        )
    last_seq, cleared_at = connection.execute(
        "SELECT last_seq, cleared_at FROM sessions WHERE key = ?", (session.key,)
    ).fetchone()
    return last_seq, None if cleared_at is None else moment(cleared_at)


def _entry(row: Sequence[Any]) -> Entry:
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
