"""What the graph needs of leases."""

from collections.abc import Sequence
from typing import Protocol

from chatbot.domain import Session, Turn


class SessionLeases(Protocol):
    """Who answers in a session: one turn at a time, also across processes.

    A lease expires a few seconds after it was last claimed, so a process that dies frees its
    sessions. It holds the turn in progress with the answer so far.
    """

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """Take the session for `turn`, or go on holding it, and note the answer so far.

        Where a holder died, its turn is returned and the session is not taken: the caller
        keeps that turn, releases it and claims again, so that nothing of it is ever lost.

        Raises:
            BusyError: Another turn is being answered.
            StoppedError: The turn, which holds the session, was asked to stop.
            HistoryError: The store could not be asked.
        """
        ...

    async def ask_to_stop(self, session: Session) -> bool:
        """Let the turn that holds the session hear, when it claims it next, that it is to stop.

        Tells whether there is one.

        Raises:
            HistoryError: The store could not be asked.
        """
        ...

    async def release(self, session: Session, turn_id: str) -> None:
        """Free the session, if this turn holds it.

        Raises:
            HistoryError: The store could not be asked; the lease expires by itself.
        """
        ...

    async def running(self, session: Session) -> Turn | None:
        """Return the turn that is being answered, with its answer and record so far.

        Raises:
            HistoryError: The store could not be asked.
        """
        ...

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """Return at most `limit` turns whose holder died, to be kept and then released.

        Raises:
            HistoryError: The store could not be asked.
        """
        ...
