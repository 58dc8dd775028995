"""The history in a local SQLite file, or in memory."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from chatbot.domain import LoadedHistory, Session, SessionSummary, Turn, checked_id
from chatbot.errors import HistoryError
from chatbot.history import rows
from chatbot.history.entries import clean_turn
from chatbot.history.sqlite import BUSY_SECONDS, SqliteFile

SWEEP = timedelta(hours=1)


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
    ) -> None:
        self.file = SqliteFile(path, busy_seconds=busy_seconds)
        self.life = timedelta(days=ttl_days)
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
            await self.file.read(rows.probe)
        except HistoryError as error:
            return error.message
        return ""

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        since = datetime.now(UTC) - self.life
        entries = await self.file.read(
            lambda connection: (
                rows.newest(connection, session.key, limit=max(limit, 0))
                if rows.is_live(connection, session.key, since=since)
                else []
            )
        )
        return LoadedHistory(turns=tuple(entry.turn for entry in entries))

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        checked_id(turn_id, "turn id")
        since = datetime.now(UTC) - self.life
        entry = await self.file.read(
            lambda connection: (
                rows.get(connection, session.key, turn_id)
                if rows.is_live(connection, session.key, since=since)
                else None
            )
        )
        return None if entry is None else entry.turn

    async def save(self, session: Session, turn: Turn) -> str:
        """See `ChatHistory.save`."""
        turn = clean_turn(turn)
        now = datetime.now(UTC)
        await self.file.write(
            lambda connection: rows.put(connection, session, turn, now=now, life=self.life)
        )
        if now >= self._next_sweep:
            await self._sweep()
        return ""

    async def clear(self, session: Session) -> int:
        """See `ChatHistory.clear`."""
        now = datetime.now(UTC)
        return await self.file.write(
            lambda connection: rows.clear(connection, session, now=now, life=self.life)
        )

    async def sessions(self, user_id: str, *, limit: int) -> Sequence[SessionSummary]:
        """See `ChatHistory.sessions`."""
        checked_id(user_id, "user id", slash=True)
        since = datetime.now(UTC) - self.life
        return await self.file.read(
            lambda connection: rows.summaries(
                connection, user_id, since=since, limit=max(limit, 0)
            )
        )

    async def _sweep(self) -> None:
        now = datetime.now(UTC)
        self._next_sweep = now + SWEEP
        await self.file.write(
            lambda connection: rows.remove_expired(connection, since=now - self.life)
        )
