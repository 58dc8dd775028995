"""Asks again what failed for technical reasons, and gives up where nothing works."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from chatbot.errors import ChatbotError, SchemaError

PAUSES = (1.0, 4.0, 12.0)  # at least so long, where no time is asked for
LONGEST_PAUSE = 90.0
HOPELESS = 5  # failures in a row, of which the last ones are not waited for any more


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why something was not measured at all, and when it may be."""

    reason: str
    code: str = ""
    retryable: bool = True
    retry_after: float | None = None

    @classmethod
    def of(cls, error: ChatbotError) -> "Failure":
        """Return what the error says. A form that a model fails was asked for often enough."""
        return cls(
            reason=f"{error.code}: {error.message}",
            code=error.code,
            retryable=error.retryable and not isinstance(error, SchemaError),
            retry_after=error.retry_after,
        )


class Attempt(Protocol):
    """What came of asking once."""

    @property
    def failure(self) -> Failure | None:
        """Why there is nothing to measure."""
        ...


class HopelessError(Exception):
    """So much failed in a row that there is no use in going on; says why."""


Tried = TypeVar("Tried", bound=Attempt)
Wait = Callable[[float, str], None]  # so many seconds, and for what reason


class Patience:
    """Waits as long as a service asks for, `LONGEST_PAUSE` at most, a few times.

    Whoever succeeds gives the others new hope. While nothing does, what fails is asked once.
    """

    def __init__(
        self,
        on_wait: Wait = lambda _seconds, _why: None,
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._on_wait = on_wait
        self._pauses = pauses
        self._successes = 0
        self._in_a_row = 0

    async def ask(self, work: Callable[[], Awaitable[Tried]]) -> Tried:
        """Return what comes of it, at last a failure."""
        known, pauses = self._successes, iter(self._pauses)
        while True:
            tried = await work()
            failure = tried.failure
            if failure is None:
                self._successes += 1
                self._in_a_row = 0
                return tried
            if known != self._successes:
                known, pauses = self._successes, iter(self._pauses)
            least = next(pauses, None)
            if least is None or self._in_a_row or not failure.retryable:
                break
            seconds = max(failure.retry_after or 0, least)
            if seconds > LONGEST_PAUSE:
                break
            self._on_wait(seconds, failure.reason)
            await asyncio.sleep(seconds)
        self._in_a_row += 1
        return tried

    def check(self, failure: Failure | None) -> None:
        """Go on, unless this is one failure too many.

        Raises:
            HopelessError: It is.
        """
        if failure is not None and self._in_a_row >= HOPELESS:
            raise HopelessError(failure.reason)

    def hope(self) -> None:
        """Begin with something else, which may work where all before failed."""
        self._in_a_row = min(self._in_a_row, HOPELESS - 1)
