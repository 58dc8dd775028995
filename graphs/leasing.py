"""Holds a session for one turn, from its first step to the end, whatever that is."""

import asyncio
import logging
import random

from chatbot.domain import Turn, TurnStatus
from chatbot.errors import BusyError, ChatbotError, HistoryError
from chatbot.ports import ChatHistory, SessionLeases
from chatbot.tasks import pause, stop
from graphs.turn import LiveTurn

logger = logging.getLogger(__name__)

RENEW_SECONDS = 1.0
STOP_SECONDS = 2.0
IDLE_SECONDS = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5


class Lease:
    """The hold of a turn on its session, renewed each second with the answer so far."""

    def __init__(self, turn: LiveTurn, leases: SessionLeases, history: ChatHistory) -> None:
        self._turn = turn
        self._leases = leases
        self._history = history
        self._stopping = asyncio.Event()
        self._released = False
        self._renewal: asyncio.Task[None] | None = None

    async def take(self, wait_seconds: float) -> None:
        """Wait for the session to be free, take it, and begin to renew the hold.

        What a turn whose process died had said is kept first. A store of leases that cannot be
        asked does not stop the turn.

        Raises:
            BusyError: The session was not free within `wait_seconds`.
        """
        try:
            left = await self._claim(wait_seconds)
        except HistoryError as error:
            self._turn.degrade("lease", error.message)
            return
        self._renewal = asyncio.create_task(self._renew(), name=f"lease {self._turn.id}")
        if left is not None:
            await self._keep(left)

    async def end(self) -> None:
        """Free the session. What cannot be freed expires by itself."""
        if self._renewal is not None:
            await stop(self._renewal, self._stopping, seconds=STOP_SECONDS)
        if not self._released:
            await self._release()
            self._released = True

    async def _claim(self, wait_seconds: float) -> Turn | None:
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + wait_seconds, FIRST_PAUSE
        while True:
            try:
                return await self._leases.claim(
                    self._turn.session, self._turn.kept_as("stopped")
                )
            except BusyError:
                if loop.time() + pause > give_up:
                    raise
                if pause == FIRST_PAUSE:
                    self._turn.stage("waiting")
            # Not all that wait ask at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def _renew(self) -> None:
        """Renew until the turn ends; keep it if its run was cancelled between two steps."""
        while self._turn.idle_seconds() < IDLE_SECONDS:
            await pause(self._stopping, RENEW_SECONDS)
            if self._stopping.is_set():
                return
            try:
                await self._leases.renew(self._turn.session, self._turn.kept_as("stopped"))
            except ChatbotError as error:
                logger.debug("the lease of turn %s waits: %s", self._turn.id, error.message)
        self._turn.drop_prefetch()
        status: TurnStatus = "complete" if self._turn.finished else "stopped"
        await self._keep(self._turn.kept_as(status))
        await self._release()
        self._released = True

    async def _keep(self, turn: Turn) -> None:
        try:
            await self._history.save(self._turn.session, turn)
        except ChatbotError as error:
            logger.warning("turn %s was not saved: %s", turn.id, error.message)

    async def _release(self) -> None:
        try:
            await self._leases.release(self._turn.session, self._turn.id)
        except ChatbotError as error:
            logger.debug("the lease of turn %s expires: %s", self._turn.id, error.message)
