"""Keeps what a process that died had said, also where nobody asks in its session again."""

import asyncio
import logging
from types import TracebackType
from typing import Self

from chatbot.errors import ChatbotError
from chatbot.leases.port import SessionLeases
from chatbot.ports import ChatHistory
from chatbot.tasks import pause, stop

logger = logging.getLogger(__name__)

SWEEP_SECONDS = 5.0
STOP_SECONDS = 3.0
BATCH = 20


class Sweeper:
    """Saves abandoned turns as stopped ones, now and then, while its context is open."""

    def __init__(self, history: ChatHistory, leases: SessionLeases) -> None:
        self._history = history
        self._leases = leases
        self._found: set[str] = set()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to sweep."""
        self._task = asyncio.create_task(self._sweep_on(), name="lease sweep")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the sweeping."""
        if self._task is not None:
            await stop(self._task, self._stopping, seconds=STOP_SECONDS)

    async def sweep(self) -> int:
        """Keep what was left unfinished and return how many turns that was.

        What is found for the first time may only be late, and is left until the next time. A
        turn that was saved after all stays as it is: saving it again changes nothing.
        """
        swept = 0
        found = await self._leases.abandoned(BATCH)
        known, self._found = self._found, {turn.id for _, turn in found}
        for session, turn in found:
            if turn.id not in known:
                continue
            try:
                await self._history.save(session, turn)
                await self._leases.release(session, turn.id)
            except ChatbotError as error:  # it may concern this session alone
                logger.debug("turn %s cannot be kept yet: %s", turn.id, error.message)
            else:
                swept += 1
        return swept

    async def _sweep_on(self) -> None:
        while not self._stopping.is_set():
            try:
                await self.sweep()
            except ChatbotError as error:
                logger.debug("abandoned turns cannot be looked for: %s", error.message)
            except Exception:  # the sweep is the outermost layer and must go on
                logger.exception("abandoned turns were not kept")
            await pause(self._stopping, SWEEP_SECONDS)
