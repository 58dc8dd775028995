"""Keeps calls away from a service that is down, until a probe finds it back."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from chatbot.knowledge.ragflow.errors import RagflowError, unreachable
from chatbot.tasks import end

_log = logging.getLogger(__name__)

PAUSE = 1.0
LONGEST_PAUSE = 30.0
PATIENCE = 0.25


class CircuitBreaker:
    """Refuses calls at once while the service is down.

    A call that failed for good opens it. The next caller starts one probe for everybody, and
    nobody waits longer than `patience` after its start: so one slow call shuts nobody out, and
    a dead service costs nobody more. A failed probe is repeated after a pause at the earliest.
    When calls fail again although the probe succeeded, probing pauses too, longer each time.
    """

    def __init__(
        self, probe: Callable[[], Awaitable[None]], *, patience: float = PATIENCE
    ) -> None:
        self._probe = probe
        self._patience = patience
        self._reason = ""
        self._not_before = 0.0
        self._pause = 0.0
        self._waited_until = 0.0
        self._probing: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls are refused at the moment."""
        return bool(self._reason)

    async def admit(self) -> None:
        """Return if a call may be made.

        Raises:
            RagflowError: The service is down; says since what and when to try again.
        """
        if not self._reason:
            return
        now = time.monotonic()
        if self._probing is None and now >= self._not_before:
            self._probing = asyncio.create_task(self._run_probe())
            self._waited_until = now + self._patience
        if self._probing is not None and now < self._waited_until:
            await asyncio.wait({self._probing}, timeout=self._waited_until - now)
        if self._reason:
            wait = max(self._not_before - time.monotonic(), PAUSE)
            raise unreachable(self._reason, retry_after=round(wait, 1))

    def succeeded(self) -> None:
        """Take note that a call was answered."""
        self._reason = ""
        self._pause = 0.0

    def failed(self, error: RagflowError) -> None:
        """Take note that a call failed for good because the service did not answer."""
        if self._reason:  # of calls that ran at the same time only the first counts
            return
        _log.warning("RAGFlow does not answer: %s", error.in_full)
        self._reason = error.detail or error.kind
        self._not_before = time.monotonic() + self._pause
        self._pause = min(self._pause * 2 or PAUSE, LONGEST_PAUSE)

    async def close(self) -> None:
        """End a probe that is under way."""
        await end(*([self._probing] if self._probing else []))

    async def _run_probe(self) -> None:
        try:
            await self._probe()
            self._reason = ""
        except RagflowError as error:
            self._reason = error.detail or error.kind
            self._not_before = time.monotonic() + PAUSE
        finally:
            self._probing = None
