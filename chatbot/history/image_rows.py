"""Images as rows of SQLite, which go with their session."""

import sqlite3
from datetime import datetime, timedelta

from chatbot.domain import Session
from chatbot.history import rows
from chatbot.images.image import Image, named


def put(  # noqa: PLR0913 - bound with `partial`
    connection: sqlite3.Connection,
    session: Session,
    image: Image,
    *,
    at: datetime,
    now: datetime,
    life: timedelta,
) -> None:
    """Keep an image of that moment with its session, unless that was cleared since."""
    _, cleared_at = rows.open_session(connection, session, now=now, life=life)
    if cleared_at is not None and at <= cleared_at:
        return
    connection.execute(
        "INSERT OR IGNORE INTO images (key, name, user_id, data) VALUES (?, ?, ?, ?)",
        (session.key, image.name, session.user_id, image.data),
    )


def find(connection: sqlite3.Connection, user_id: str, name: str) -> Image | None:
    """Return an image of one of the user's sessions."""
    row = connection.execute(
        "SELECT data FROM images WHERE user_id = ? AND name = ? LIMIT 1", (user_id, name)
    ).fetchone()
    return None if row is None else named(name, row[0])


def get(connection: sqlite3.Connection, key: str, name: str) -> Image | None:
    """Return an image of a session."""
    row = connection.execute(
        "SELECT data FROM images WHERE key = ? AND name = ?", (key, name)
    ).fetchone()
    return None if row is None else named(name, row[0])


def remove(connection: sqlite3.Connection, key: str, name: str) -> None:
    """Remove an image of a session."""
    connection.execute("DELETE FROM images WHERE key = ? AND name = ?", (key, name))


def size(connection: sqlite3.Connection) -> int:
    """Return how many bytes the images have."""
    (total,) = connection.execute("SELECT total(length(data)) FROM images").fetchone()
    return int(total)
