"""A history that goes on without MongoDB, and brings it up to date when it is back."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from chatbot.domain import (
    LoadedHistory,
    Match,
    Session,
    SessionCursor,
    SessionSummary,
    Turn,
    checked_id,
)
from chatbot.errors import ChatbotError, HistoryError
from chatbot.history import outbox
from chatbot.history.entries import Entry, Recent, checked_title, clean_turn
from chatbot.history.local import LocalChatHistory
from chatbot.history.replay import Primary, Replay
from chatbot.history.sqlite import LocalFileError
from chatbot.images.image import Image
from chatbot.ports import SessionStore
from chatbot.ratings import RatedTurn, RatingFilter

AWAY = "MongoDB did not answer just now."
KEPT_HERE = "The turn is kept on this machine and stored when MongoDB is back."
SHOWN_FROM_HERE = "Until it is back, only the turns kept on this machine are known."

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


class ResilientChatHistory:
    """Keeps turns in `primary`, and in `local` what it has not got yet.

    Every change is noted in the local file first and struck out when `primary` has it. So
    whatever fails, and whenever, there is one way to go on: send again what is noted, in
    order. While `primary` is away its part is played by `local`.
    """

    def __init__(
        self,
        primary: Primary,
        local: LocalChatHistory,
        *,
        outbox_limit: int = outbox.LIMIT,
        sessions_in_memory: int = outbox.KEPT_SESSIONS,
    ) -> None:
        self._primary = primary
        self._local = local
        self._file = local.file
        self._outbox_limit = outbox_limit
        self._sessions_in_memory = sessions_in_memory
        self._replay = Replay(primary, local.file, self._tidy)

    async def open(self) -> None:
        """Open the local file, or memory in its place, and begin to watch over the primary.

        Raises:
            ConfigurationError: The primary store refuses the user.
        """
        try:
            await self._primary.ping()
        except HistoryError as error:
            self._replay.note(error)  # so the first turn does not wait for it
        try:
            await self._local.open()
        except LocalFileError as error:
            _log.warning("%s Until then, nothing outlives this process.", error.message)
            self._file.use_memory()
        self._replay.open()

    async def close(self) -> None:
        """End the watch and close both stores. What waits is sent by the next process."""
        await self._replay.close()
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
        return bool(self._replay.away)

    def note_failure(self, error: HistoryError) -> None:
        """Learn from another part that the primary is away, so that no turn waits again."""
        self._replay.note(error)

    async def check(self) -> str:
        """See `ChatHistory.check`."""
        if not self.is_away:
            try:
                await self._primary.ping()
            except ChatbotError as error:
                return self._replay.note(error)
            return ""
        waiting = await self._file.read(outbox.size)
        if not waiting:
            return self._replay.away
        changes = "1 change waits" if waiting == 1 else f"{waiting} changes wait"
        return f"{self._replay.away} {changes} on this machine until it is back."

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        reason = await self._replay.flush(session)
        if not self.is_away:
            try:
                recent = await self._primary.recent(session, limit=limit)
            except HistoryError as error:
                reason = self._replay.note(error)
            else:
                entries = await self._reconciled(session, recent, limit=limit)
                return LoadedHistory(turns=tuple(entry.turn for entry in entries))
        kept = await self._local.load(session, limit=limit)
        reason = reason or self._replay.away or AWAY  # which another turn found meanwhile
        return LoadedHistory(turns=kept.turns, degraded=f"{reason} {SHOWN_FROM_HERE}")

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        refused = await self._replay.flush(session)
        found = await self._first(lambda store: store.find(session, turn_id))
        return await self._local.find(session, turn_id) if refused and not found else found

    async def save(self, session: Session, turn: Turn) -> str:
        """See `ChatHistory.save`."""
        post = partial(
            outbox.post_turn, session=session, turn=clean_turn(turn), limit=self._outbox_limit
        )
        try:
            await self._post(post)
        except HistoryError as error:
            if self.is_away:
                raise
            _log.warning("a turn could not be noted before it was sent: %s", error.message)
            return await self._primary.save(session, turn)
        reason = await self._replay.flush(session)
        return f"{reason} {KEPT_HERE}" if reason else ""

    async def clear(self, session: Session) -> int:
        """See `ChatHistory.clear`. A store that is away is cleared when it is back."""
        here = await self._erase(partial(outbox.post_clear, session=session))
        there, _ = await self._replay.send(session)
        return max(here, there["clear"])

    async def sessions(
        self, user_id: str, *, limit: int, before: SessionCursor | None = None
    ) -> Sequence[SessionSummary]:
        """See `SessionStore.sessions`. Those of this machine, while the primary is away."""
        return await self._first(
            lambda store: store.sessions(user_id, limit=limit, before=before)
        )

    async def summary(self, session: Session) -> SessionSummary | None:
        """See `SessionStore.summary`."""
        await self._replay.flush(session)
        return await self._first(lambda store: store.summary(session))

    async def turns(self, session: Session) -> Sequence[Turn]:
        """See `SessionStore.turns`. A primary that fails in it gives no part for the whole."""
        await self._replay.flush(session)
        return await (self._local if self.is_away else self._primary).turns(session)

    async def search(self, user_id: str, text: str, *, limit: int) -> Sequence[Match]:
        """See `SessionStore.search`."""
        return await self._first(lambda store: store.search(user_id, text, limit=limit))

    async def rated(self, wanted: RatingFilter) -> Sequence[RatedTurn]:
        """See `SessionStore.rated`. Those of this machine, while the primary is away."""
        return await self._first(lambda store: store.rated(wanted))

    async def rename(self, session: Session, title: str) -> bool:
        """See `SessionStore.rename`."""
        title = checked_title(title)
        is_known = await self._post(partial(outbox.post_title, session=session, title=title))
        there, _ = await self._replay.send(session)
        return is_known or there["rename"] > 0

    async def restore(self, session: Session, title: str, turns: Sequence[Turn]) -> None:
        """See `SessionStore.restore`."""
        await self._post(
            partial(
                outbox.post_turns,
                session=session,
                title=checked_title(title),
                turns=[clean_turn(turn) for turn in turns],
                limit=self._outbox_limit,
            )
        )
        await self._replay.flush(session)

    async def forget_user(self, user_id: str) -> int:
        """See `SessionStore.forget_user`. A store that is away does it when it is back."""
        checked_id(user_id, "user id", slash=True)
        here = await self._erase(partial(outbox.post_farewell, user_id=user_id))
        there, _ = await self._replay.send(outbox.of_user(user_id))
        return max(here, there["forget_user"])

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        """See `ImageStore.keep_image`. While the primary is away it waits on this machine."""
        if not self.is_away:
            try:
                await self._primary.keep_image(session, image, at=at)
            except HistoryError as error:
                if not error.retryable:
                    raise
                self._replay.note(error)
            else:
                return
        await self._post(partial(outbox.post_image, session=session, image=image, at=at))

    async def find_image(self, user_id: str, name: str) -> Image | None:
        """See `ImageStore.find_image`. One that waits here is found as well."""
        reason = self._replay.away
        found = None
        if not reason:
            try:
                found = await self._primary.find_image(user_id, name)
            except HistoryError as error:
                reason = self._replay.note(error)
        found = found or await self._local.find_image(user_id, name)
        if reason and found is None:
            message = f"{reason} Until it is back, this image cannot be read."
            raise HistoryError(message)
        return found

    async def _post(self, post: Callable[..., Answer]) -> Answer:
        """Do in the local file what `post` does, by the clock and the expiry of this store."""
        return await self._file.write(self._now(post))

    async def _erase(self, post: Callable[..., Answer]) -> Answer:
        """Do the same with what deletes, so that nothing of it is left in the file."""
        return await self._file.erase(self._now(post))

    def _now(self, post: Callable[..., Answer]) -> Callable[..., Answer]:
        return partial(post, now=datetime.now(UTC), life=self._local.life)

    async def _tidy(self) -> None:
        """Remove what has expired here, and of copies in memory all but the newest."""
        await self._local.tidy()
        if self._file.is_in_memory:
            await self._file.write(partial(outbox.drop_copies, keep=self._sessions_in_memory))

    async def _first(self, ask: Callable[[SessionStore], Awaitable[Answer]]) -> Answer:
        """Ask the primary store, or the local one while that is away."""
        if not self.is_away:
            try:
                return await ask(self._primary)
            except HistoryError as error:
                self._replay.note(error)
        return await ask(self._local)

    async def _reconciled(
        self, session: Session, recent: Recent, *, limit: int
    ) -> Sequence[Entry]:
        """Keep a copy of what the primary said, and add to it what it refused."""
        if limit < 1:
            return ()
        try:
            known = partial(outbox.knows, key=session.key, recent=recent, limit=limit)
            if await self._file.read(known):
                return recent.entries
            await self._post(
                partial(outbox.remember, session=session, recent=recent, limit=limit)
            )
            waiting = await self._file.read(
                partial(outbox.items, session=session, limit=self._outbox_limit)
            )
        except HistoryError as error:
            _log.warning("what MongoDB holds could not be kept here: %s", error.message)
            return recent.entries
        refused = {item.entry.turn.id: item.entry for item in waiting if item.entry}
        entries = {entry.turn.id: entry for entry in recent.entries} | refused
        return sorted(entries.values(), key=lambda entry: entry.seq)[-limit:]
