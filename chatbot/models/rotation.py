"""Takes turns among endpoints and lets those rest that failed."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from chatbot.errors import ModelError, ModelFailure

RATE_LIMIT_SECONDS = 60.0
FAILURE_SECONDS = 10.0
SHORTEST_REST = 1.0
LONGEST_REST = 600.0

# Why an endpoint rests. Not for a refused request: another endpoint would refuse it as well.
REASONS: Mapping[ModelFailure, str] = {
    "rate_limit": "too many requests",
    "auth": "the API key was refused",
    "timeout": "no answer in time",
    "connection": "no connection",
    "server": "an error of the server",
    "protocol": "a reply that is not an answer",
    "interrupted": "a cut answer",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointState:
    """How an endpoint does: `cooling` for so many seconds, or `probing` after that.

    `error` is the kind of its last failure, if it has not answered since. `address` is without
    what signs in; it is nothing where the provider's package knows it.
    """

    name: str
    model: str = ""
    address: str | None = None
    state: Literal["ready", "cooling", "probing"]
    seconds: float
    error: ModelFailure | None
    calls: int
    failures: int


@dataclass(kw_only=True, slots=True)
class _Turn:
    name: str
    weight: int
    credit: float = 0
    rests_until: float = 0
    probing: bool = False
    error: ModelFailure | None = None
    calls: int = 0
    failures: int = 0


class Rotation:
    """Weighted round robin with cool-downs.

    A failure rests an endpoint for as long as it asked, else for 60 s after a rate limit and
    for 10 s after anything else. Afterwards one call alone tries it, and only its success
    opens the endpoint to the others.
    """

    def __init__(
        self,
        endpoints: Sequence[tuple[str, int]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turns = [_Turn(name=name, weight=weight) for name, weight in endpoints]
        self._clock = clock

    def choose(self, allowed: Collection[int]) -> int | None:
        """Return which endpoint of the allowed ones takes the next call, if one is ready.

        Whoever gets one says `succeeded`, `failed` or `abandoned` afterwards.
        """
        now = self._clock()
        ready = [i for i in allowed if self._ready(self._turns[i], now)]
        if not ready:
            return None
        for index in ready:
            self._turns[index].credit += self._turns[index].weight
        chosen = max(ready, key=lambda index: self._turns[index].credit)
        turn = self._turns[chosen]
        turn.credit -= sum(self._turns[index].weight for index in ready)
        turn.calls += 1
        turn.probing = turn.error is not None
        return chosen

    def retry(self, index: int) -> None:
        """Count another attempt of the call that made this endpoint rest."""
        self._turns[index].calls += 1
        self._turns[index].probing = True

    def succeeded(self, index: int) -> None:
        """Note that the endpoint began to answer.

        That ends a rest only where the answer came after it: another call may have met a limit
        meanwhile.
        """
        turn = self._turns[index]
        if turn.rests_until > self._clock() and not turn.probing:
            return
        turn.probing, turn.error, turn.rests_until = False, None, 0

    def failed(self, index: int, error: ModelError) -> None:
        """Note a failure. Unless the request was at fault, the endpoint rests."""
        turn = self._turns[index]
        if error.kind not in REASONS:
            self.succeeded(index)
            return
        turn.probing = False
        turn.failures += 1
        seconds = error.retry_after
        if seconds is None:
            seconds = RATE_LIMIT_SECONDS if error.kind == "rate_limit" else FAILURE_SECONDS
        until = self._clock() + min(max(seconds, SHORTEST_REST), LONGEST_REST)
        if until >= turn.rests_until:  # else another call has met something that lasts longer
            turn.rests_until, turn.error = until, error.kind

    def abandoned(self, index: int) -> None:
        """Note that the call ended before the endpoint said anything."""
        self._turns[index].probing = False

    def waits(self, allowed: Collection[int]) -> dict[int, tuple[float, ModelFailure]]:
        """Return the seconds until each endpoint that failed is ready again, and why it rests.

        One that another call is trying right now may be ready in a moment.
        """
        now = self._clock()
        found: dict[int, tuple[float, ModelFailure]] = {}
        for index in allowed:
            turn = self._turns[index]
            if turn.error is not None:
                shortest = SHORTEST_REST if turn.probing else 0.0
                found[index] = max(turn.rests_until - now, shortest), turn.error
        return found

    def states(self) -> list[EndpointState]:
        """Return how each endpoint does at this moment."""
        now = self._clock()
        return [
            EndpointState(
                name=turn.name,
                state="cooling"
                if turn.rests_until > now
                else ("ready" if turn.error is None else "probing"),
                seconds=round(max(0.0, turn.rests_until - now), 1),
                error=turn.error,
                calls=turn.calls,
                failures=turn.failures,
            )
            for turn in self._turns
        ]

    def _ready(self, turn: _Turn, now: float) -> bool:
        return turn.rests_until <= now and not turn.probing
