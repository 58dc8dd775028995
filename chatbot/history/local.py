"""The history in a local SQLite file, or in memory."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Self

from chatbot.domain import (
    LoadedHistory,
    Match,
    Session,
    SessionCursor,
    SessionSummary,
    Turn,
    checked_id,
)
from chatbot.errors import HistoryError
from chatbot.history import image_rows, rows, session_rows
from chatbot.history.entries import Entry, checked_title, clean_text, clean_turn
from chatbot.history.search_words import wanted
from chatbot.history.sqlite import BUSY_SECONDS, SqliteFile
from chatbot.images.image import Image
from chatbot.ratings import RatedTurn, RatingFilter


class LocalChatHistory:
    """Keeps turns in the SQLite file at `path`, which several processes may share.

    `:memory:` keeps them for as long as the object lives. The file is opened when first used,
    or by `open`; `close` ends the thread it is used in.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        ttl_days: float = 30,
        busy_seconds: float = BUSY_SECONDS,
        tidy_every: timedelta = timedelta(hours=1),
    ) -> None:
        self.file = SqliteFile(path, busy_seconds=busy_seconds)
        self.life = timedelta(days=ttl_days)
        self._tidy_every = tidy_every
        self._next_sweep = datetime.min.replace(tzinfo=UTC)

    async def open(self) -> None:
        """Open the file and remove what has expired.

        Raises:
            HistoryError: The file cannot be used. Says what to do.
        """
        await self._sweep()

    async def close(self) -> None:
        """Close the file."""
        await self.file.close()

    async def __aenter__(self) -> Self:
        """Open the file."""
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        await self.close()

    async def check(self) -> str:
        """See `ChatHistory.check`."""
        try:
            await self.file.read(session_rows.probe)
        except HistoryError as error:
            return error.message
        return ""

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        since = self._cutoff

        def read(connection: Connection) -> Sequence[Entry]:
            if not rows.is_live(connection, session.key, since=since):
                return ()
            return rows.newest(connection, session.key, limit=max(limit, 0))

        entries = await self.file.read(read)
        return LoadedHistory(turns=tuple(entry.turn for entry in entries))

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        checked_id(turn_id, "turn id")
        since = self._cutoff

        def read(connection: Connection) -> Entry | None:
            if not rows.is_live(connection, session.key, since=since):
                return None
            return rows.get(connection, session.key, turn_id)

        entry = await self.file.read(read)
        return None if entry is None else entry.turn

    async def save(self, session: Session, turn: Turn) -> str:
        """See `ChatHistory.save`."""
        turn = clean_turn(turn)
        now = datetime.now(UTC)
        await self.file.write(
            partial(rows.put, session=session, turn=turn, now=now, life=self.life)
        )
        await self.tidy()
        return ""

    async def clear(self, session: Session) -> int:
        """See `ChatHistory.clear`."""
        return await self.file.erase(
            partial(session_rows.clear, session=session, now=datetime.now(UTC), life=self.life)
        )

    async def sessions(
        self, user_id: str, *, limit: int, before: SessionCursor | None = None
    ) -> Sequence[SessionSummary]:
        """See `SessionStore.sessions`."""
        checked_id(user_id, "user id", slash=True)
        return await self.file.read(
            partial(
                session_rows.summaries,
                user_id=user_id,
                since=self._cutoff,
                limit=max(limit, 0),
                before=before,
            )
        )

    async def summary(self, session: Session) -> SessionSummary | None:
        """See `SessionStore.summary`."""
        return await self.file.read(
            partial(session_rows.summary, session=session, since=self._cutoff)
        )

    async def turns(self, session: Session) -> Sequence[Turn]:
        """See `SessionStore.turns`."""
        return (await self.load(session, limit=sys.maxsize)).turns

    async def search(self, user_id: str, text: str, *, limit: int) -> Sequence[Match]:
        """See `SessionStore.search`."""
        checked_id(user_id, "user id", slash=True)
        since, most = self._cutoff, max(limit, 0)

        def find(connection: Connection) -> Sequence[Match]:
            words = wanted(clean_text(text))
            if not words:
                return ()
            return session_rows.matches(connection, user_id, words, since=since, limit=most)

        return await self.file.read(find)

    async def rated(self, wanted: RatingFilter) -> Sequence[RatedTurn]:
        """See `SessionStore.rated`."""
        return await self.file.read(
            partial(session_rows.rated, wanted=wanted, active_since=self._cutoff)
        )

    async def rename(self, session: Session, title: str) -> bool:
        """See `SessionStore.rename`."""
        return await self.file.write(
            partial(
                session_rows.rename,
                session=session,
                title=checked_title(title),
                since=self._cutoff,
            )
        )

    async def restore(self, session: Session, title: str, turns: Sequence[Turn]) -> None:
        """See `SessionStore.restore`."""
        turns = [clean_turn(turn) for turn in turns]
        title = checked_title(title)
        now = datetime.now(UTC)

        def put_all(connection: Connection) -> None:
            session_rows.revive(connection, session, now=now, life=self.life)
            for turn in turns:
                rows.put(connection, session, turn, now=now, life=self.life)
            session_rows.rename(connection, session, title, since=now - self.life)

        await self.file.write(put_all)

    async def forget_user(self, user_id: str) -> int:
        """See `SessionStore.forget_user`."""
        checked_id(user_id, "user id", slash=True)
        return await self.file.erase(
            partial(
                session_rows.clear_user,
                user_id=user_id,
                now=datetime.now(UTC),
                life=self.life,
            )
        )

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        """See `ImageStore.keep_image`."""
        now = datetime.now(UTC)
        await self.file.write(
            partial(
                image_rows.put,
                session=session,
                image=image,
                at=at or now,
                now=now,
                life=self.life,
            )
        )

    async def find_image(self, user_id: str, name: str) -> Image | None:
        """See `ImageStore.find_image`."""
        return await self.file.read(partial(image_rows.find, user_id=user_id, name=name))

    async def tidy(self) -> None:
        """Remove what has expired, unless that was done lately."""
        if datetime.now(UTC) >= self._next_sweep:
            await self._sweep()

    @property
    def _cutoff(self) -> datetime:
        return datetime.now(UTC) - self.life

    async def _sweep(self) -> None:
        now = datetime.now(UTC)
        self._next_sweep = now + self._tidy_every
        await self.file.write(partial(session_rows.remove_expired, since=now - self.life))
