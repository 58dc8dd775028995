"""The turns of this process that wait for a session: first come, first served."""

import asyncio
from weakref import WeakValueDictionary

from chatbot.domain import Session


class SessionQueues:
    """A queue for each session that a turn waits for. Only its head asks for the lease."""

    def __init__(self) -> None:
        self._heads: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def head(self, session: Session) -> asyncio.Lock:
        """Return the place at the head of the session's queue, a lock that is fair."""
        return self._heads.setdefault(session.key, asyncio.Lock())
