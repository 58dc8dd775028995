"""Holds a session for one turn, from its first step to the end, whatever that is."""

import asyncio
import logging
import random

from chatbot.domain import Turn, TurnStatus
from chatbot.errors import (
    BusyError,
    ChatbotError,
    DeadlineError,
    HistoryError,
    StoppedError,
    TakenOverError,
)
from chatbot.leases.port import SessionLeases
from chatbot.leases.queues import SessionQueues
from chatbot.leases.records import LEASE_SECONDS, busy
from chatbot.ports import ChatHistory
from chatbot.statistics import Statistics
from chatbot.tasks import pause, stop
from graphs.keeping import log_turn
from graphs.turn import LiveTurn

logger = logging.getLogger(__name__)

RENEW_SECONDS = 1.0
STOP_SECONDS = 2.0
IDLE_RENEWALS = 10  # not seconds: where the event loop is behind, so are the renewals
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5


class Lease:
    """The hold of a turn on its session, renewed each second with the answer so far.

    A turn whose session another one has taken is broken off: two are never mixed.
    """

    def __init__(
        self,
        turn: LiveTurn,
        leases: SessionLeases,
        history: ChatHistory,
        statistics: Statistics,
        *,
        renew_seconds: float = RENEW_SECONDS,
    ) -> None:
        self._turn = turn
        self._leases = leases
        self._history = history
        self._statistics = statistics
        self._renew_seconds = renew_seconds
        self._stopping = asyncio.Event()
        self._waits = False
        self._released = False
        self._renewal: asyncio.Task[None] | None = None

    async def take(self, queues: SessionQueues, wait_seconds: float) -> None:
        """Wait for the session to be free, take it, and begin to renew the hold.

        A store of leases that cannot be asked does not stop the turn: it is asked again with
        each renewal.

        Raises:
            BusyError: The session was not free within `wait_seconds`.
        """
        try:
            await self._wait(queues.head(self._turn.session), wait_seconds)
        except HistoryError as error:
            self._turn.degrade("lease", error.message)
        self._renewal = asyncio.create_task(self._renew(), name=f"lease {self._turn.id}")

    async def end(self) -> None:
        """Free the session. What cannot be freed expires by itself."""
        if self._renewal is not None:
            await stop(self._renewal, self._stopping, seconds=STOP_SECONDS)
        if not self._released:
            await self._release(self._turn.id)
            self._released = True

    async def _wait(self, head: asyncio.Lock, seconds: float) -> None:
        give_up = asyncio.get_running_loop().time() + seconds
        if head.locked():
            self._tell_waiting()
        try:
            async with asyncio.timeout_at(give_up):
                await head.acquire()
        except TimeoutError:
            raise busy() from None
        try:
            await self._claim_until(give_up)
        finally:
            head.release()

    async def _claim_until(self, give_up: float) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._claim()
            except BusyError:
                if asyncio.get_running_loop().time() + pause > give_up:
                    raise
                self._tell_waiting()
            # Not all that wait ask at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def _claim(self) -> None:
        """Take the session or go on holding it; what one that died had said is kept first."""
        while True:
            so_far = self._turn.kept_as("stopped")
            left = await self._leases.claim(self._turn.session, so_far)
            if left is None:
                return
            await self._keep(left)
            await self._leases.release(self._turn.session, left.id)

    async def _renew(self) -> None:
        """Renew until the turn ends; keep it if its run was cancelled between two steps."""
        loop = asyncio.get_running_loop()
        renewed_at = loop.time()
        idle, seen = 0, None
        while idle < IDLE_RENEWALS:
            await pause(self._stopping, self._renew_seconds)
            if self._stopping.is_set():
                return
            last = self._turn.last_step
            idle = idle + 1 if last is not None and last == seen else 0
            seen = last
            try:
                if loop.time() - renewed_at > LEASE_SECONDS:
                    await self._check_whether_kept()
                await self._claim()
                renewed_at = loop.time()
            except BusyError:
                self._turn.break_off(TakenOverError())
                return
            except StoppedError as error:
                self._turn.break_off(error)
                return
            except ChatbotError as error:
                logger.debug("the lease of turn %s waits: %s", self._turn.id, error.message)
        self._turn.drop_guesses()
        status: TurnStatus = "complete" if self._turn.finished else "stopped"
        await self._keep(self._turn.kept_as(status))
        self._turn.settled = True
        log_turn(self._turn, status, self._statistics)
        await self._release(self._turn.id)
        self._released = True
        message = "Nothing went on with this answer for too long. Please ask again."
        self._turn.break_off(DeadlineError(message))

    async def _check_whether_kept(self) -> None:
        """Find out whether the turn, which has stood still, was given up by others meanwhile.

        Raises:
            BusyError: It was: others have gone on from what it had said until then.
            HistoryError: The history could not be asked.
        """
        if await self._history.find(self._turn.session, self._turn.id) is not None:
            raise busy()

    def _tell_waiting(self) -> None:
        if not self._waits:
            self._waits = True
            self._turn.stage("waiting")

    async def _keep(self, turn: Turn) -> None:
        try:
            await self._history.save(self._turn.session, turn)
        except ChatbotError as error:
            logger.warning("turn %s was not saved: %s", turn.id, error.message)

    async def _release(self, turn_id: str) -> None:
        try:
            await self._leases.release(self._turn.session, turn_id)
        except ChatbotError as error:
            logger.debug("the lease of turn %s expires: %s", turn_id, error.message)
