"""The way of what waits in the outbox to MongoDB: in order, as often as it takes."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Protocol
from weakref import WeakValueDictionary

from chatbot.domain import Session
from chatbot.errors import ChatbotError, ConfigurationError, HistoryError, InputError
from chatbot.history import image_rows, outbox
from chatbot.history.entries import Entry, Recent
from chatbot.history.sqlite import LocalFileError, SqliteFile
from chatbot.ports import SessionStore
from chatbot.tasks import end

BATCH = 100
FIRST_PROBE_SECONDS = 0.25
LAST_PROBE_SECONDS = 2.0
SWEEP_SECONDS = 2.0

Counts = Counter[outbox.Action]

_log = logging.getLogger(__name__)


class Primary(SessionStore, Protocol):
    """The store that comes first. It takes the same thing as often as it is sent."""

    async def recent(self, session: Session, *, limit: int) -> Recent:
        """Return the newest turns with their places, oldest first."""
        ...

    async def append(self, session: Session, entries: Sequence[Entry]) -> None:
        """Keep turns that have their places already."""
        ...

    async def revive(self, session: Session, *, at: datetime) -> None:
        """Take back that the session was cleared up to that moment."""
        ...

    async def forget(self, session: Session, *, at: datetime) -> int:
        """Clear the session of all that started up to that moment."""
        ...

    async def forget_all(self, user_id: str, *, at: datetime) -> int:
        """Clear the user's sessions of all that started up to that moment."""
        ...

    async def ping(self) -> None:
        """Return when the store has answered."""
        ...

    async def close(self) -> None:
        """End what goes on in the background."""
        ...


class Replay:
    """Sends what waits in the outbox, and knows whether the primary store is away.

    `away` is the reason, or empty. While it is away nobody waits for it: a task asks until it
    answers, and sends what waits. The same task sends what another process left behind, and
    calls `tidy`.
    """

    def __init__(
        self, primary: Primary, file: SqliteFile, tidy: Callable[[], Awaitable[None]]
    ) -> None:
        self._primary = primary
        self._file = file
        self._tidy = tidy
        self._is_away = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._complaint = ""
        self.away = ""

    def open(self) -> None:
        """Begin to watch over the primary store."""
        self._watch = asyncio.create_task(self._watch_over(), name="history watch")

    async def close(self) -> None:
        """End the watch. What waits is sent by the next process."""
        if self._watch is not None:
            await end(self._watch)
            self._watch = None

    def note(self, error: ChatbotError) -> str:
        """Stop using the primary store if this means that it is away; return the reason."""
        if error.retryable and not isinstance(error, LocalFileError | ConfigurationError):
            if not self.away:
                _log.warning("the history goes on without MongoDB: %s", error.message)
            self.away = error.message
            self._is_away.set()
        return error.message

    async def flush(self, session: Session) -> str:
        """Send what waits of the session, and return why that could not be done, or "".

        Raises:
            ConfigurationError: The primary store refuses the user.
        """
        _, reason = await self.send(session)
        return reason

    async def send(self, session: Session) -> tuple[Counts, str]:
        """Do the same as `flush`, and return what each kind of deed counted as well."""
        async with self._lock(session):
            if self.away:
                return Counter(), self.away
            try:
                return await self._drain(session), ""
            except HistoryError as error:
                return Counter(), self.note(error)

    async def _drain(self, session: Session) -> Counts:
        counts: Counts = Counter()
        pending = partial(outbox.items, session=session, limit=BATCH)
        is_more = True
        while is_more:  # what is noted meanwhile is sent by whoever noted it
            waiting = await self._file.read(pending)
            is_more = len(waiting) == BATCH
            for action, group in groupby(waiting, key=lambda item: item.action):
                batch = list(group)
                counts[action] += await self._do(session, action, batch)
                numbers = [item.number for item in batch]
                await self._file.write(partial(outbox.settle, key=session.key, numbers=numbers))
        return counts

    async def _do(
        self, session: Session, action: outbox.Action, batch: Sequence[outbox.Item]
    ) -> int:
        last = batch[-1]
        match action:
            case "turn":
                if entries := [item.entry for item in batch if item.entry is not None]:
                    await self._primary.append(session, entries)
                return 0
            case "image":
                for item in batch:
                    await self._hand_over(session, item)
                return 0
            case "clear":
                return await self._primary.forget(session, at=last.at)
            case "rename":
                return await self._primary.rename(session, last.title)
            case "revive":
                await self._primary.revive(session, at=last.at)
                return 0
            case "forget_user":
                return await self._primary.forget_all(session.user_id, at=last.at)

    async def _hand_over(self, session: Session, item: outbox.Item) -> None:
        """Give an image to the primary store, which has it alone from then on."""
        key, name = session.key, item.name
        image = await self._file.read(partial(image_rows.get, key=key, name=name))
        if image is None:
            return
        try:
            await self._primary.keep_image(session, image, at=item.at)
        except HistoryError as error:
            if error.retryable:
                raise
            _log.warning("an image was refused and is gone: %s", error.message)
        await self._file.write(partial(image_rows.remove, key=key, name=name))

    def _lock(self, session: Session) -> asyncio.Lock:
        return self._locks.setdefault(session.key, asyncio.Lock())

    async def _watch_over(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._is_away.wait()
            try:
                was_away = await self._await_primary()
                # What was noted just now is being sent by the process that noted it.
                age = timedelta() if was_away else timedelta(seconds=SWEEP_SECONDS)
                await self._sweep(until=datetime.now(UTC) - age)
                await self._tidy()
            except ChatbotError as error:
                self._complain(error)
            except Exception:  # noqa: BLE001 - the watch is the outermost layer and must go on
                _log.exception("turns still wait for MongoDB")

    async def _await_primary(self) -> bool:
        """Return when the primary store answers, and whether it was away."""
        was_away = bool(self.away)
        delay = FIRST_PROBE_SECONDS
        while self.away:
            await asyncio.sleep(delay)
            delay = min(2 * delay, LAST_PROBE_SECONDS)
            try:
                await self._primary.ping()
            except HistoryError:
                continue
            except ConfigurationError as error:  # it answers, and turns are to hear the same
                _log.error("%s", error.message)
            self.away = ""
            self._is_away.clear()
            _log.info("MongoDB is back")
        return was_away

    async def _sweep(self, *, until: datetime) -> None:
        for session in await self._file.read(partial(outbox.sessions, until=until)):
            try:
                await self.flush(session)
            except InputError as error:  # it concerns this session alone
                self._complain(error)
            if self.away:
                return

    def _complain(self, error: ChatbotError) -> None:
        """Log what keeps turns waiting, but not the same every two seconds."""
        if error.message != self._complaint:
            _log.warning("turns still wait for MongoDB: %s", error.message)
        self._complaint = error.message
