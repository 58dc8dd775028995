"""How long a model may take, and the timer that holds it to that."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from chatbot.errors import ModelError

FINISH_SECONDS = 1.0  # for the usage report that may follow the end of an answer


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeLimits:
    """Seconds until the first token, between two tokens, and for the whole call."""

    first_token: float = 30
    between_tokens: float = 30
    total: float = 120


class Timer:
    """Measures one call. Only `progress` moves the deadline: heartbeats do not.

    The time between tokens counts from the moment somebody waits for the next one, so a slow
    consumer is not held against the model.
    """

    def __init__(self, limits: TimeLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._clock = self._loop.time
        now = self._clock()
        self._total_at = self._end_at = now + limits.total
        self._token_at: float | None = now + limits.first_token
        self._started = False
        self._waits_until: float | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def remaining(self) -> float:
        """Seconds until the limit for the whole call."""
        return self._total_at - self._clock()

    def waiting(self) -> asyncio.Timeout:
        """Return the time limit for the next read.

        Raises:
            TimeoutError: The time is over already.
        """
        return asyncio.timeout_at(self._deadline())

    def wait(self, give_up: Callable[[], None]) -> None:
        """Begin to wait for the next read; `give_up` is called if its time passes.

        One alarm serves all the reads of a call: a new time limit for each would cost more
        than the read.

        Raises:
            TimeoutError: The time is over already.
        """
        self._waits_until = deadline = self._deadline()
        if self._alarm is None or deadline < self._alarm.when():
            self._set_alarm(deadline, give_up)

    def waited(self) -> None:
        """Note that the read is done."""
        self._waits_until = None

    def close(self) -> None:
        """Forget the alarm."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def progress(self) -> None:
        """Note that a token came."""
        self._token_at = None
        self._started = True

    def whole(self) -> None:
        """Give the first token the whole time: it comes with all the others."""
        self._token_at = self._total_at

    def finishing(self) -> None:
        """Note that the answer is complete: what still follows gets little time."""
        self._token_at = self._total_at = min(self._end_at, self._clock() + FINISH_SECONDS)

    def error(self, endpoint: str) -> ModelError:
        """Return the error that says which limit was passed."""
        limits = self._limits
        if self._clock() >= self._total_at:
            what = f"did not finish within {_rounded(limits.total)} seconds"
        elif self._started:
            seconds = _rounded(limits.between_tokens)
            what = f"stopped for more than {seconds} seconds while it answered"
        else:
            what = f"did not begin to answer within {_rounded(limits.first_token)} seconds"
        return ModelError("timeout", f"The language model ({endpoint}) {what}.")

    def _deadline(self) -> float:
        now = self._clock()
        if self._token_at is None:
            self._token_at = now + self._limits.between_tokens
        deadline = min(self._token_at, self._total_at)
        if now >= deadline:
            raise TimeoutError
        return deadline

    def _set_alarm(self, deadline: float, give_up: Callable[[], None]) -> None:
        self.close()
        self._alarm = self._loop.call_at(deadline, self._ring, give_up)

    def _ring(self, give_up: Callable[[], None]) -> None:
        self._alarm = None
        if self._waits_until is None:
            return  # the next wait sets it again
        if self._clock() >= self._waits_until:
            give_up()
        else:
            self._set_alarm(self._waits_until, give_up)


def _rounded(seconds: float) -> str:
    return f"{round(seconds, 1):g}"
