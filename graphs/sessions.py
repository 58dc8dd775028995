"""The conversations of a chatbot, as people and programs look after them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from chatbot.domain import (
    ANONYMOUS,
    Match,
    Session,
    SessionCursor,
    SessionSummary,
    Thumb,
    Turn,
    checked_id,
    in_force,
)
from chatbot.errors import ChatbotError, HistoryError, InputError
from chatbot.history.archive import export_session, import_session
from chatbot.images import archive
from chatbot.ports import Ports, SessionStore
from chatbot.statistics import summarised

COUNTED = 1_000
ABANDONED = 1_000  # leases that are looked through
LONGEST_COMMENT = 2_000


class Sessions:
    """What can be done with sessions and their turns. Without a user they are anonymous ones.

    Every method raises `InputError` for an id of the wrong form, and `HistoryError` where
    neither the store nor its fallback can do it.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    @property
    def ports(self) -> Ports:
        """What it is built on."""
        return self._ports

    async def turns(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        limit: int = 50,
        replaced: bool = False,
    ) -> Sequence[Turn]:
        """Return the newest turns of a session, oldest first; `replaced` ones if asked for."""
        loaded = await self._ports.history.load(session_of(session_id, user_id), limit=limit)
        return loaded.turns if replaced else in_force(loaded.turns)

    async def turn(
        self, session_id: str, turn_id: str | None = None, *, user_id: str | None = None
    ) -> Turn:
        """Return one turn of a session, the last one that counts by default.

        Raises:
            InputError: There is no such turn.
        """
        session = session_of(session_id, user_id)
        if turn_id is not None:
            found = await self._ports.history.find(session, turn_id)
        else:
            turns = in_force((await self._ports.history.load(session, limit=20)).turns)
            found = turns[-1] if turns else None
        if found is None:
            message = "There is no such turn in this conversation."
            raise await self.missing(message)
        return found

    async def running(self, session_id: str, *, user_id: str | None = None) -> Turn | None:
        """Return the turn that is being answered in a session, with its answer so far.

        It may be another process that answers; then it is at most a second old.
        """
        if self._ports.leases is None:
            return None
        return await self._ports.leases.running(session_of(session_id, user_id))

    async def stop(self, session_id: str, *, user_id: str | None = None) -> bool:
        """Ask for the answer that is being written in a session to stop; what was said is kept.

        It does within a second, in whatever process. Tells whether there is one.
        """
        if self._ports.leases is None:
            return False
        return await self._ports.leases.ask_to_stop(session_of(session_id, user_id))

    async def sessions(
        self, *, user_id: str | None = None, limit: int = 50, before: str | None = None
    ) -> Sequence[SessionSummary]:
        """Return the user's sessions, the most recently active first.

        `before` is the `cursor` of the last session on the page before.
        """
        user = user_of(user_id)
        if before is None:
            return await self._ports.history.sessions(user, limit=limit)
        cursor = SessionCursor.parse(before)
        return await self._store.sessions(user, limit=limit, before=cursor)

    async def search_sessions(
        self, text: str, *, user_id: str | None = None, limit: int = 20
    ) -> Sequence[Match]:
        """Return the user's turns that have all words of the text, the newest first."""
        return await self._store.search(user_of(user_id), text, limit=limit)

    async def rate(
        self,
        session_id: str,
        turn_id: str,
        thumb: Thumb | None,
        comment: str | None = None,
        *,
        user_id: str | None = None,
    ) -> Turn:
        """Keep with a turn what its reader thinks of it, and return it; no thumb takes it back.

        Raises:
            InputError: There is no such turn, or the comment is too long.
        """
        if comment is not None and len(comment) > LONGEST_COMMENT:
            message = f"A comment may have {LONGEST_COMMENT} characters."
            raise InputError(message)
        turn = await self.turn(session_id, turn_id, user_id=user_id)
        feedback = {
            "thumb": thumb,
            "comment": (comment or "").strip() or None,
            "at": datetime.now(UTC).isoformat(),
        }
        rated = replace(turn, record={**turn.record, "feedback": feedback})
        await self._ports.history.save(session_of(session_id, user_id), rated)
        if self._ports.traces is not None:
            self._ports.traces.rated(rated)
        return rated

    async def rename(self, session_id: str, title: str, *, user_id: str | None = None) -> None:
        """Give a session another title.

        Raises:
            InputError: There is no such session, or the title has no words.
        """
        if not await self._store.rename(session_of(session_id, user_id), title):
            message = f"There is no session {session_id}."
            raise await self.missing(message)

    async def clear(self, session_id: str, *, user_id: str | None = None) -> int:
        """Forget a session and return how many turns it had, 0 where there is none."""
        session = session_of(session_id, user_id)
        turns = await self._ports.history.clear(session)
        await self._drop_leases(lambda each: each == session)
        return turns

    async def forget_user(self, user_id: str | None = None) -> int:
        """Forget all sessions of a user and return how many there were."""
        user = user_of(user_id)
        sessions = await self._store.forget_user(user)
        await self._drop_leases(lambda each: each.user_id == user)
        return sessions

    async def export(self, session_id: str, *, user_id: str | None = None) -> dict[str, Any]:
        """Return a session with all its turns, their records and images as plain JSON.

        Raises:
            InputError: There is no such session.
        """
        session = session_of(session_id, user_id)
        data = await export_session(self._store, session)
        if self._ports.images is not None:
            images = self._ports.images
            data["images"] = await archive.exported(images, session.user_id, data["turns"])
        return data

    async def import_(
        self, data: object, *, user_id: str | None = None, session_id: str | None = None
    ) -> Session:
        """Make a session from what `export` returned, and return it.

        It gets the id it had, or `session_id`.

        Raises:
            InputError: It is something else, or the session exists with other turns.
        """
        images = await asyncio.to_thread(archive.read, data)
        session = await import_session(
            self._store, data, user_id=user_of(user_id), session_id=session_id
        )
        if self._ports.images is not None:
            await archive.kept(self._ports.images, session, images)
        return session

    async def statistics(
        self, session_id: str | None = None, *, user_id: str | None = None
    ) -> Mapping[str, Any]:
        """Return turns, intents, errors, degradations and latencies.

        Of a session they are counted from its newest 1,000 turns; without one they are those of
        this process since it started, which `metrics` has in the format of Prometheus.
        """
        if session_id is None:
            return self._ports.statistics.summary()
        session = session_of(session_id, user_id)
        return summarised((await self._ports.history.load(session, limit=COUNTED)).turns)

    def metrics(self) -> bytes:
        """Return the statistics of this process in the text format of Prometheus."""
        return self._ports.statistics.exposition()

    async def missing(self, message: str) -> ChatbotError:
        """Return the error that something is not there, as `message` tells.

        While the store is away it is another one: nobody knows then.
        """
        if degraded := await self._ports.history.check():
            return HistoryError(f"{degraded} Until then nobody knows whether this is there.")
        return InputError(message)

    async def _drop_leases(self, is_dropped: Callable[[Session], bool]) -> None:
        """Let go of what processes that died had said in these sessions.

        What cannot be reached now is found by the next sweep, and not kept by the history.
        """
        if self._ports.leases is None:
            return
        with suppress(HistoryError):
            for session, turn in await self._ports.leases.abandoned(ABANDONED):
                if is_dropped(session):
                    await self._ports.leases.release(session, turn.id)

    @property
    def _store(self) -> SessionStore:
        """The history as a store of sessions, which every store of ours is."""
        if not hasattr(self._ports.history, "restore"):
            message = "This history keeps turns alone: it has no list of named sessions."
            raise InputError(message)
        return cast("SessionStore", self._ports.history)


def session_of(session_id: str, user_id: str | None) -> Session:
    """Return the session with these ids, of the anonymous user where none is named."""
    return Session(session_id=session_id, user_id=ANONYMOUS if user_id is None else user_id)


def user_of(user_id: str | None) -> str:
    """Return the user with this id, the anonymous one where none is named.

    Raises:
        InputError: The id has the wrong form.
    """
    return ANONYMOUS if user_id is None else checked_id(user_id, "user id", slash=True)
