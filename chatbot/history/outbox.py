"""What MongoDB has not got yet and what it said last, beside the rows of the local history."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from chatbot.domain import Session, Turn
from chatbot.errors import HistoryError
from chatbot.history import image_rows, rows, session_rows
from chatbot.history.entries import Entry, Recent, microseconds, moment
from chatbot.images.image import MEGABYTE, Image

Action = Literal["turn", "image", "clear", "rename", "revive", "forget_user"]

LIMIT = 10_000
IMAGE_BYTES = 512 * MEGABYTE
KEPT_TURNS = 200
KEPT_SESSIONS = 500  # in memory
PENDING = "(SELECT turn_id FROM outbox WHERE outbox.key = ?1 AND turn_id IS NOT NULL)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One thing to do in MongoDB. A turn that was cleared meanwhile has no entry.

    `name` is of the turn or the image, `title` the session's new one.
    """

    number: int
    action: Action
    at: datetime
    entry: Entry | None = None
    name: str = ""
    title: str = ""


def of_user(user_id: str) -> Session:
    """Return a session of the user, with which what waits of all of them is sent."""
    return Session(session_id="*", user_id=user_id)


def post_turn(  # noqa: PLR0913 - bound with `partial`
    connection: sqlite3.Connection,
    session: Session,
    turn: Turn,
    *,
    now: datetime,
    life: timedelta,
    limit: int,
) -> None:
    """Keep the turn, with its final id and place, and note that MongoDB has to get it.

    Raises:
        HistoryError: So much is waiting already that no more is taken.
    """
    if not rows.put(connection, session, turn, now=now, life=life).changed:
        return
    _post(connection, session, "turn", at=now, turn_id=turn.id)
    _check_size(connection, limit)


def post_turns(  # noqa: PLR0913 - bound with `partial`
    connection: sqlite3.Connection,
    session: Session,
    title: str,
    turns: Sequence[Turn],
    *,
    now: datetime,
    life: timedelta,
    limit: int,
) -> None:
    """Keep all the turns, even if the session was cleared, and note that MongoDB has to."""
    session_rows.revive(connection, session, now=now, life=life)
    _post(connection, session, "revive", at=now)
    for turn in turns:
        if rows.put(connection, session, turn, now=now, life=life).changed:
            _post(connection, session, "turn", at=now, turn_id=turn.id)
    _check_size(connection, limit)
    session_rows.rename(connection, session, title, since=now - life)
    _post(connection, session, "rename", at=now, title=title)


def post_image(  # noqa: PLR0913 - bound with `partial`
    connection: sqlite3.Connection,
    session: Session,
    image: Image,
    *,
    at: datetime | None,
    now: datetime,
    life: timedelta,
) -> None:
    """Keep the image here, and note that MongoDB has to get it.

    Raises:
        HistoryError: So many bytes are waiting already that no more are taken.
    """
    if image_rows.size(connection) > IMAGE_BYTES:
        message = "MongoDB has been away for so long that this machine takes no more images."
        raise HistoryError(message)
    image_rows.put(connection, session, image, at=at or now, now=now, life=life)
    _post(connection, session, "image", at=at or now, turn_id=image.name)


def post_title(
    connection: sqlite3.Connection,
    session: Session,
    title: str,
    *,
    now: datetime,
    life: timedelta,
) -> bool:
    """Rename the session here, note that MongoDB has to, and tell whether it is known here."""
    is_known = session_rows.rename(connection, session, title, since=now - life)
    _post(connection, session, "rename", at=now, title=title)
    return is_known


def post_farewell(
    connection: sqlite3.Connection, user_id: str, *, now: datetime, life: timedelta
) -> int:
    """Forget the user's sessions, also what waits of them, and note that MongoDB has to."""
    count = session_rows.clear_user(connection, user_id, now=now, life=life)
    connection.execute("DELETE FROM outbox WHERE user_id = ?", (user_id,))
    everything = _everything(user_id)
    _post(connection, of_user(user_id), "forget_user", at=now, key=everything)
    return count


def _check_size(connection: sqlite3.Connection, limit: int) -> None:
    if size(connection) > limit:
        message = (
            f"MongoDB has been away for so long that {limit} turns wait for it on this "
            "machine: no more are taken until it is back."
        )
        raise HistoryError(message)


def post_clear(
    connection: sqlite3.Connection,
    session: Session,
    *,
    now: datetime,
    life: timedelta,
) -> int:
    """Forget the session, also what waits of it, and note that MongoDB has to."""
    turns = session_rows.clear(connection, session, now=now, life=life)
    connection.execute("DELETE FROM outbox WHERE key = ?", (session.key,))
    _post(connection, session, "clear", at=now)
    return turns


def items(connection: sqlite3.Connection, session: Session, *, limit: int) -> Sequence[Item]:
    """Return what waits of the session and of all sessions of its user, oldest first."""
    key = session.key
    found = connection.execute(
        "SELECT number, action, at, turn_id, title FROM outbox WHERE key IN (?, ?)"
        " ORDER BY number LIMIT ?",
        (key, _everything(session.user_id), limit),
    ).fetchall()
    return [
        Item(
            number=number,
            action=action,
            at=moment(at),
            entry=rows.get(connection, key, turn_id) if action == "turn" else None,
            name=turn_id or "",
            title=title or "",
        )
        for number, action, at, turn_id, title in found
    ]


def settle(connection: sqlite3.Connection, key: str, numbers: Sequence[int]) -> None:
    """Strike out what MongoDB has got, and keep only the newest turns of what it has."""
    connection.executemany(
        "DELETE FROM outbox WHERE number = ?", [(number,) for number in numbers]
    )
    connection.execute(
        "DELETE FROM turns WHERE key = ?1 AND seq < (SELECT seq FROM turns WHERE key = ?1"  # noqa: S608 - a constant
        f" ORDER BY seq DESC LIMIT 1 OFFSET ?2) AND id NOT IN {PENDING}",
        (key, KEPT_TURNS - 1),
    )


def drop_copies(connection: sqlite3.Connection, *, keep: int) -> None:
    """Keep the latest sessions, and those of which something waits for MongoDB."""
    dropped = connection.execute(
        "DELETE FROM sessions WHERE key IN (SELECT key FROM sessions"
        " WHERE key NOT IN (SELECT key FROM outbox)"
        " ORDER BY last_active DESC LIMIT -1 OFFSET ?)",
        (keep,),
    )
    if dropped.rowcount:
        connection.execute("DELETE FROM turns WHERE key NOT IN (SELECT key FROM sessions)")


def sessions(connection: sqlite3.Connection, *, until: datetime) -> Sequence[Session]:
    """Return the sessions of which something waits since before `until`, oldest first."""
    found = connection.execute(
        "SELECT session_id, user_id FROM outbox WHERE at <= ? GROUP BY key"
        " ORDER BY min(number)",
        (microseconds(until),),
    )
    return [Session(session_id=session_id, user_id=user_id) for session_id, user_id in found]


def size(connection: sqlite3.Connection) -> int:
    """Return how many things wait."""
    (count,) = connection.execute("SELECT count(*) FROM outbox").fetchone()
    return int(count)


def knows(connection: sqlite3.Connection, key: str, recent: Recent, *, limit: int) -> bool:
    """Tell whether what MongoDB said of the session is what is kept of it."""
    row = connection.execute(
        "SELECT last_seq, title FROM sessions WHERE key = ?", (key,)
    ).fetchone()
    if row is None:
        return not recent.entries
    last_seq, title = row
    kept = rows.marks(connection, key, limit=limit)
    return (
        last_seq >= recent.last_seq
        and title == recent.title
        and kept == [(entry.turn.id, entry.seq, entry.turn.status) for entry in recent.entries]
    )


def remember(  # noqa: PLR0913 - bound with `partial`
    connection: sqlite3.Connection,
    session: Session,
    recent: Recent,
    *,
    limit: int,
    now: datetime,
    life: timedelta,
) -> None:
    """Keep the newest turns that MongoDB holds in the place of those that were kept."""
    rows.open_session(connection, session, now=now, life=life)
    is_all = len(recent.entries) < limit
    oldest = 0 if is_all else recent.entries[0].seq
    connection.execute(
        f"DELETE FROM turns WHERE key = ?1 AND seq BETWEEN ?2 AND ?3 AND id NOT IN {PENDING}",  # noqa: S608 - a constant
        (session.key, oldest, recent.last_seq),
    )
    waiting = {
        item.entry.turn.id for item in items(connection, session, limit=-1) if item.entry
    }
    rows.write(
        connection,
        session.key,
        [entry for entry in recent.entries if entry.turn.id not in waiting],
    )
    connection.execute(
        "UPDATE sessions SET last_seq = max(last_seq, ?), title = ? WHERE key = ?",
        (recent.last_seq, recent.title, session.key),
    )


def _everything(user_id: str) -> str:
    """Return the key of what concerns all sessions of a user. No session has it."""
    return f"{user_id} "


def _post(  # noqa: PLR0913 - the columns of the row
    connection: sqlite3.Connection,
    session: Session,
    action: Action,
    *,
    at: datetime,
    turn_id: str | None = None,
    title: str | None = None,
    key: str | None = None,
) -> None:
    connection.execute(
        "INSERT INTO outbox (key, user_id, session_id, action, at, turn_id, title)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            key or session.key,
            session.user_id,
            session.session_id,
            action,
            microseconds(at),
            turn_id,
            title,
        ),
    )
