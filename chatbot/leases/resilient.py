"""Leases that go on between the processes of one machine while MongoDB is away."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from chatbot.domain import Session, Turn
from chatbot.errors import BusyError, HistoryError
from chatbot.leases.port import SessionLeases
from chatbot.tasks import end

LOOK_SECONDS = 0.05

Answer = TypeVar("Answer")


class ResilientLeases:
    """Holds a session in `local` and, unless that is away, in `primary` as well.

    Held in both, a session stays with its turn when MongoDB goes away or comes back in the
    middle of it. `away` tells that MongoDB is known to be away, so that nothing waits for it;
    `failed` is told when it turns out to be, so that nothing else waits for it either.
    """

    def __init__(
        self,
        primary: SessionLeases,
        local: SessionLeases,
        *,
        away: Callable[[], bool],
        failed: Callable[[HistoryError], object],
    ) -> None:
        self._primary = primary
        self._local = local
        self._away = away
        self._failed = failed
        self._calls: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Return when no call of the primary store is under way: each has its deadline."""
        if self._calls:
            await asyncio.wait(self._calls)

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """See `SessionLeases.claim`."""
        if (left := await self._local.claim(session, turn)) is not None:
            return left
        try:
            return await self._ask(lambda: self._primary.claim(session, turn), None)
        except BusyError:
            await self._local.release(session, turn.id)
            raise

    async def ask_to_stop(self, session: Session) -> bool:
        """See `SessionLeases.ask_to_stop`."""
        here = await self._local.ask_to_stop(session)
        return await self._ask(lambda: self._primary.ask_to_stop(session), here) or here

    async def release(self, session: Session, turn_id: str) -> None:
        """See `SessionLeases.release`. What cannot be released expires."""
        try:
            await self._local.release(session, turn_id)
        finally:
            await self._ask(lambda: self._primary.release(session, turn_id), None)

    async def running(self, session: Session) -> Turn | None:
        """See `SessionLeases.running`."""
        turn = await self._ask(lambda: self._primary.running(session), None)
        return turn or await self._local.running(session)

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """See `SessionLeases.abandoned`."""
        here = await self._local.abandoned(limit)
        nothing: Sequence[tuple[Session, Turn]] = ()
        there = await self._ask(lambda: self._primary.abandoned(limit), nothing)
        known = {turn.id for _, turn in there}
        return [*there, *((session, turn) for session, turn in here if turn.id not in known)]

    async def _ask(self, ask: Callable[[], Awaitable[Answer]], otherwise: Answer) -> Answer:
        """Return what the primary store says, or something else while it is away.

        Nobody waits for a call that is under way when another one finds that it is away. The
        call ends by itself: MongoDB's driver leaves a connection open that it is opening.
        """
        if self._away():
            return otherwise
        call = asyncio.create_task(self._call(ask, otherwise))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            while not call.done():
                await asyncio.wait({call}, timeout=LOOK_SECONDS)
                if self._away() and not call.done():
                    call.add_done_callback(_forget)
                    return otherwise
        except asyncio.CancelledError:
            await end(call)
            raise
        return call.result()

    async def _call(self, ask: Callable[[], Awaitable[Answer]], otherwise: Answer) -> Answer:
        try:
            return await ask()
        except HistoryError as error:
            if not error.retryable:
                raise
            self._failed(error)
            return otherwise


def _forget(call: asyncio.Task[Any]) -> None:
    """Ask what came of a call, so that nobody is told that it was never retrieved."""
    if not call.cancelled():
        call.exception()
