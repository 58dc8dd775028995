"""Sessions as people see them, as rows of SQLite."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from chatbot.domain import (
    Match,
    Session,
    SessionCursor,
    SessionSummary,
)
from chatbot.history import rows
from chatbot.history.entries import even, microseconds, moment
from chatbot.ratings import RatedTurn, RatingFilter

SUMMARY = (
    "SELECT session_id, title, last_active,"
    " (SELECT count(*) FROM turns WHERE turns.key = sessions.key) FROM sessions"
)
CLEAR = (
    "UPDATE sessions SET title = '', last_active = ?1, cleared_at = ?1,"
    " cleared_seq = max(last_seq, ?2), last_seq = max(last_seq, ?2)"
)


def clear(
    connection: sqlite3.Connection, session: Session, *, now: datetime, life: timedelta
) -> int:
    """Forget the turns of a session. Its row stays, without words, until it expires."""
    turns = 0
    if rows.is_live(connection, session.key, since=now - life):
        (turns,) = connection.execute(
            "SELECT count(*) FROM turns WHERE key = ?", (session.key,)
        ).fetchone()
    rows.open_session(connection, session, now=now, life=life)
    at = microseconds(now)
    connection.execute("DELETE FROM turns WHERE key = ?", (session.key,))
    connection.execute(f"{CLEAR} WHERE key = ?3", (at, even(at), session.key))
    return int(turns)


def summaries(
    connection: sqlite3.Connection,
    user_id: str,
    *,
    since: datetime,
    limit: int,
    before: SessionCursor | None = None,
) -> Sequence[SessionSummary]:
    """Return the user's sessions, the most recently active first."""
    found = connection.execute(
        f"{SUMMARY} WHERE user_id = ?1 AND title != '' AND last_active > ?2"
        " AND (?3 IS NULL OR last_active < ?3 OR (last_active = ?3 AND session_id > ?4))"
        " ORDER BY last_active DESC, session_id LIMIT ?5",
        (
            user_id,
            microseconds(since),
            None if before is None else microseconds(before.last_active),
            None if before is None else before.session_id,
            limit,
        ),
    )
    return tuple(_summary(row) for row in found)


def summary(
    connection: sqlite3.Connection, session: Session, *, since: datetime
) -> SessionSummary | None:
    """Return the session as a list shows it, if it has turns."""
    row = connection.execute(
        f"{SUMMARY} WHERE key = ? AND title != '' AND last_active > ?",
        (session.key, microseconds(since)),
    ).fetchone()
    return None if row is None else _summary(row)


def matches(
    connection: sqlite3.Connection,
    user_id: str,
    words: Sequence[str],
    *,
    since: datetime,
    limit: int,
) -> Sequence[Match]:
    """Return the user's turns that have all the words, the newest first."""
    has_word = (
        " AND EXISTS (SELECT 1 FROM words"
        " WHERE words.key = turns.key AND words.id = turns.id AND word = ?)"
    )
    columns = ", ".join(f"turns.{column}" for column in rows.TURN.split(", "))
    found = connection.execute(
        f"SELECT sessions.session_id, sessions.title, {columns}"  # noqa: S608 - constants
        " FROM sessions JOIN turns ON turns.key = sessions.key"
        f" WHERE user_id = ? AND last_active > ?{has_word * len(words)}"
        " ORDER BY turns.seq DESC LIMIT ?",
        (user_id, microseconds(since), *words, limit),
    )
    return tuple(
        Match(session_id=session_id, title=title, turn=rows.entry_of(row).turn)
        for session_id, title, *row in found
    )


def rated(
    connection: sqlite3.Connection,
    wanted: RatingFilter,
    *,
    active_since: datetime,
) -> Sequence[RatedTurn]:
    """Return the rated turns of all users that are wanted, the latest rated first."""
    before = wanted.before
    columns = ", ".join(f"turns.{column}" for column in rows.TURN.split(", "))
    found = connection.execute(
        f"SELECT user_id, session_id, title, rated_at, {columns}"  # noqa: S608 - constants
        " FROM turns JOIN sessions ON turns.key = sessions.key"
        " WHERE rated_at > 0 AND rated_at >= ?1 AND last_active > ?2"
        " AND (?3 IS NULL OR thumb = ?3)"
        " AND (?4 IS NULL OR rated_at < ?4 OR (rated_at = ?4 AND turns.id > ?5))"
        " ORDER BY rated_at DESC, turns.id LIMIT ?6",
        (
            microseconds(wanted.since),
            microseconds(active_since),
            wanted.thumb,
            None if before is None else microseconds(before.rated_at),
            None if before is None else before.turn_id,
            max(wanted.limit, 0),
        ),
    )
    return tuple(
        RatedTurn(
            session=Session(session_id=session_id, user_id=user_id),
            title=title,
            turn=rows.entry_of(row).turn,
            rated_at=moment(rated_at),
        )
        for user_id, session_id, title, rated_at, *row in found
    )


def rename(
    connection: sqlite3.Connection, session: Session, title: str, *, since: datetime
) -> bool:
    """Give the session another title and tell whether there is such a session."""
    changed = connection.execute(
        "UPDATE sessions SET title = ? WHERE key = ? AND title != '' AND last_active > ?",
        (title, session.key, microseconds(since)),
    )
    return changed.rowcount > 0


def revive(
    connection: sqlite3.Connection, session: Session, *, now: datetime, life: timedelta
) -> None:
    """Take back that the session was cleared, so that turns from before may come again.

    They come behind this moment, and so behind all that was cleared anywhere.
    """
    rows.open_session(connection, session, now=now, life=life)
    connection.execute(
        "UPDATE sessions SET cleared_at = NULL, last_seq = max(last_seq, ?) WHERE key = ?",
        (even(microseconds(now)), session.key),
    )


def clear_user(
    connection: sqlite3.Connection, user_id: str, *, now: datetime, life: timedelta
) -> int:
    """Forget all sessions of the user, and return how many there were.

    What is left, a name and a time, keeps turns away that run now and come later.
    """
    at = microseconds(now)
    (sessions,) = connection.execute(
        "SELECT count(*) FROM sessions WHERE user_id = ? AND title != '' AND last_active > ?",
        (user_id, microseconds(now - life)),
    ).fetchone()
    connection.execute(
        "INSERT OR REPLACE INTO farewells (user_id, at) VALUES (?, ?)", (user_id, at)
    )
    connection.execute(
        "DELETE FROM turns WHERE key IN (SELECT key FROM sessions WHERE user_id = ?)",
        (user_id,),
    )
    connection.execute(
        f"{CLEAR} WHERE user_id = ?3",
        (at, even(at), user_id),
    )
    connection.execute("DELETE FROM images WHERE user_id = ?", (user_id,))
    return int(sessions)


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
    connection.execute("DELETE FROM farewells WHERE at <= ?", (microseconds(since),))


def _summary(row: Sequence[Any]) -> SessionSummary:
    session_id, title, last_active, turns = row
    return SessionSummary(
        session_id=session_id, title=title, last_active=moment(last_active), turns=turns
    )
