"""A history that goes on without MongoDB, and brings it up to date when it is back."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Protocol, Self
from weakref import WeakValueDictionary

from chatbot.domain import LoadedHistory, Session, SessionSummary, Turn
from chatbot.errors import ChatbotError, ConfigurationError, HistoryError
from chatbot.history import outbox
from chatbot.history.entries import Entry, Recent, clean_turn
from chatbot.history.local import LocalChatHistory
from chatbot.history.sqlite import LocalFileError
from chatbot.ports import ChatHistory

BATCH = 100
FIRST_PROBE_SECONDS = 0.25
LAST_PROBE_SECONDS = 2.0
SWEEP_SECONDS = 2.0
KEPT_HERE = "The turn is kept on this machine and stored when MongoDB is back."
SHOWN_FROM_HERE = "Until it is back, only the turns kept on this machine are known."

_log = logging.getLogger(__name__)


class Primary(ChatHistory, Protocol):
    """The store that comes first. It takes a turn with its place as often as it is sent."""

    async def recent(self, session: Session, *, limit: int) -> Recent:
        """Return the newest turns with their places, oldest first."""
        ...

    async def append(self, session: Session, entries: Sequence[Entry]) -> None:
        """Keep turns that have their places already."""
        ...

    async def forget(self, session: Session, *, at: datetime) -> int:
        """Clear the session of all that started up to that moment."""
        ...

    async def ping(self) -> None:
        """Return when the store has answered."""
        ...

    async def close(self) -> None:
        """End what goes on in the background."""
        ...


class ResilientChatHistory:
    """Keeps turns in `primary`, and in `local` what it has not got yet.

    Every turn is noted in the local file first and struck out when `primary` has it. So
    whatever fails, and whenever, there is one way to go on: send again what is noted, in
    order. While `primary` is away nothing waits for it; a task asks until it answers.
    """

    def __init__(
        self, primary: Primary, local: LocalChatHistory, *, outbox_limit: int = outbox.LIMIT
    ) -> None:
        self._primary = primary
        self._local = local
        self._file = local.file
        self._outbox_limit = outbox_limit
        self._reason = ""
        self._is_down = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self) -> None:
        """Open the local file and begin to watch over the primary store.

        Raises:
            HistoryError: The local file cannot be used. Says what to do.
        """
        await self._local.open()
        self._watch = asyncio.create_task(self._watch_over(), name="history watch")

    async def close(self) -> None:
        """End the watch and close both stores. What waits is sent by the next process."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
            self._watch = None
        await self._primary.close()
        await self._local.close()

    async def __aenter__(self) -> Self:
        """Open the history."""
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the history."""
        await self.close()

    @property
    def is_away(self) -> bool:
        """Whether the primary store is known to be away at the moment."""
        return bool(self._reason)

    async def check(self) -> str:
        """See `ChatHistory.check`."""
        if not self._reason:
            try:
                await self._primary.ping()
            except ChatbotError as error:
                self._note(error)
                return error.message
        if not self._reason:
            return ""
        waiting = await self._file.read(outbox.size)
        return f"{self._reason} {waiting} turns wait on this machine until it is back."

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        reason = await self._flush(session)
        if not self._reason:
            try:
                recent = await self._primary.recent(session, limit=limit)
            except HistoryError as error:
                reason = self._note(error)
            else:
                entries = await self._reconciled(session, recent, limit=limit)
                return LoadedHistory(turns=tuple(entry.turn for entry in entries))
        kept = await self._local.load(session, limit=limit)
        return LoadedHistory(turns=kept.turns, degraded=f"{reason} {SHOWN_FROM_HERE}")

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        await self._flush(session)
        if not self._reason:
            try:
                turn = await self._primary.find(session, turn_id)
            except HistoryError as error:
                self._note(error)
            else:
                if turn is not None:
                    return turn
        return await self._local.find(session, turn_id)

    async def save(self, session: Session, turn: Turn) -> str:
        """See `ChatHistory.save`."""
        post = partial(
            outbox.post_turn,
            session=session,
            turn=clean_turn(turn),
            now=datetime.now(UTC),
            life=self._local.life,
            limit=self._outbox_limit,
        )
        try:
            await self._file.write(post)
        except HistoryError as error:
            if self._reason:
                raise
            _log.warning("a turn could not be noted before it was sent: %s", error.message)
            return await self._primary.save(session, turn)
        reason = await self._flush(session)
        return f"{reason} {KEPT_HERE}" if reason else ""

    async def clear(self, session: Session) -> int:
        """See `ChatHistory.clear`. A store that is away is cleared when it is back."""
        post = partial(
            outbox.post_clear,
            session=session,
            now=datetime.now(UTC),
            life=self._local.life,
        )
        here = await self._file.write(post)
        async with self._lock(session):
            if self._reason:
                return here
            try:
                return max(here, await self._drain(session))
            except HistoryError as error:
                self._note(error)
                return here

    async def sessions(self, user_id: str, *, limit: int) -> Sequence[SessionSummary]:
        """See `ChatHistory.sessions`. Those of this machine, while the primary is away."""
        if not self._reason:
            try:
                return await self._primary.sessions(user_id, limit=limit)
            except HistoryError as error:
                self._note(error)
        return await self._local.sessions(user_id, limit=limit)

    async def _flush(self, session: Session) -> str:
        """Send what waits of the session, and return why that could not be done, or ""."""
        async with self._lock(session):
            if self._reason:
                return self._reason
            try:
                await self._drain(session)
            except HistoryError as error:
                return self._note(error)
        return ""

    async def _drain(self, session: Session) -> int:
        """Send what waits of the session in order, and return how many turns were cleared."""
        cleared = 0
        pending = partial(outbox.items, key=session.key, limit=BATCH)
        while waiting := await self._file.read(pending):
            for action, group in groupby(waiting, key=lambda item: item.action):
                batch = list(group)
                if action == "clear":
                    cleared += await self._primary.forget(session, at=batch[-1].at)
                elif entries := [item.entry for item in batch if item.entry is not None]:
                    await self._primary.append(session, entries)
                numbers = [item.number for item in batch]
                await self._file.write(partial(outbox.settle, key=session.key, numbers=numbers))
        return cleared

    async def _reconciled(
        self, session: Session, recent: Recent, *, limit: int
    ) -> Sequence[Entry]:
        """Keep a copy of what the primary said, and add to it what it refused."""
        try:
            known = partial(outbox.knows, key=session.key, recent=recent, limit=limit)
            if await self._file.read(known):
                return recent.entries
            remember = partial(
                outbox.remember,
                session=session,
                recent=recent,
                now=datetime.now(UTC),
                life=self._local.life,
            )
            await self._file.write(remember)
            waiting = await self._file.read(
                partial(outbox.items, key=session.key, limit=self._outbox_limit)
            )
        except HistoryError as error:
            _log.warning("what MongoDB holds could not be kept here: %s", error.message)
            return recent.entries
        refused = {item.entry.turn.id: item.entry for item in waiting if item.entry}
        entries = {entry.turn.id: entry for entry in recent.entries} | refused
        return sorted(entries.values(), key=lambda entry: entry.seq)[-limit:] if limit else ()

    def _note(self, error: ChatbotError) -> str:
        """Stop using the primary store if it is away, and return the reason."""
        if error.retryable and not isinstance(error, LocalFileError | ConfigurationError):
            if not self._reason:
                _log.warning("the history goes on without MongoDB: %s", error.message)
            self._reason = error.message
            self._is_down.set()
        return error.message

    def _lock(self, session: Session) -> asyncio.Lock:
        return self._locks.setdefault(session.key, asyncio.Lock())

    async def _watch_over(self) -> None:
        """Ask the store that is away until it is back; send what another process left."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._is_down.wait()
            try:
                was_away = await self._await_primary()
                # What was noted just now is being sent by the process that noted it.
                age = timedelta() if was_away else timedelta(seconds=SWEEP_SECONDS)
                await self._sweep(until=datetime.now(UTC) - age)
            except ChatbotError as error:
                _log.warning("turns still wait for MongoDB: %s", error.message)
            except Exception:  # noqa: BLE001 - the watch is the outermost layer and must go on
                _log.exception("turns still wait for MongoDB")

    async def _await_primary(self) -> bool:
        """Return when the primary store answers, and whether it was away."""
        was_away = bool(self._reason)
        delay = FIRST_PROBE_SECONDS
        while self._reason:
            await asyncio.sleep(delay)
            delay = min(2 * delay, LAST_PROBE_SECONDS)
            try:
                await self._primary.ping()
            except HistoryError:
                continue
            except ConfigurationError as error:  # it answers, and turns are to hear the same
                _log.error("%s", error.message)
            self._reason = ""
            self._is_down.clear()
            _log.info("MongoDB is back")
        return was_away

    async def _sweep(self, *, until: datetime) -> None:
        for session in await self._file.read(partial(outbox.sessions, until=until)):
            if await self._flush(session) and self._reason:
                return
