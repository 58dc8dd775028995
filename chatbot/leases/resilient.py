"""Leases that go on between the processes of one machine while MongoDB is away."""

from collections.abc import Callable, Sequence

from chatbot.domain import Session, Turn
from chatbot.errors import HistoryError
from chatbot.ports import SessionLeases


class ResilientLeases:
    """Asks `primary`, and `local` where it cannot be reached.

    `away` tells that the primary store is known to be away, so that no turn waits for it.
    """

    def __init__(
        self, primary: SessionLeases, local: SessionLeases, *, away: Callable[[], bool]
    ) -> None:
        self._primary = primary
        self._local = local
        self._away = away

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """See `SessionLeases.claim`."""
        if not self._away():
            try:
                return await self._primary.claim(session, turn)
            except HistoryError as error:
                if not error.retryable:
                    raise
        return await self._local.claim(session, turn)

    async def renew(self, session: Session, turn: Turn) -> bool:
        """See `SessionLeases.renew`."""
        if not self._away():
            try:
                if await self._primary.renew(session, turn):
                    return True
            except HistoryError as error:
                if not error.retryable:
                    raise
        return await self._local.renew(session, turn)

    async def release(self, session: Session, turn_id: str) -> None:
        """See `SessionLeases.release`. What cannot be released expires."""
        await self._local.release(session, turn_id)
        if not self._away():
            await self._primary.release(session, turn_id)

    async def running(self, session: Session) -> Turn | None:
        """See `SessionLeases.running`."""
        if not self._away():
            try:
                if (turn := await self._primary.running(session)) is not None:
                    return turn
            except HistoryError as error:
                if not error.retryable:
                    raise
        return await self._local.running(session)

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """See `SessionLeases.abandoned`."""
        here = await self._local.abandoned(limit)
        if self._away():
            return here
        return [*here, *await self._primary.abandoned(limit)]
