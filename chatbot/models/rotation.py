"""Takes turns among endpoints and lets those rest that failed."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from chatbot.errors import ModelError, ModelFailure

RATE_LIMIT_SECONDS = 60.0
FAILURE_SECONDS = 10.0
LONGEST_REST = 600.0
LONGEST_FAILURE_REST = 60.0

# A refused request is the request's fault: another endpoint would refuse it as well.
RESTS: frozenset[ModelFailure] = frozenset(
    {"rate_limit", "auth", "timeout", "connection", "server", "protocol", "interrupted"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointState:
    """How an endpoint does: `cooling` for so many seconds, or `probing` after that.

    `error` is the kind of its last failure, if it has not answered since.
    """

    name: str
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
    failed_probes: int = 0
    error: ModelFailure | None = None
    calls: int = 0
    failures: int = 0


class Rotation:
    """Weighted round robin with cool-downs.

    A rate limit rests an endpoint for as long as it asked, else 60 s; any other failure for
    10 s. Afterwards one call alone tries it, and only its success opens the endpoint to the
    others; each such failure doubles the rest, up to 60 s.
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
        if turn.error is not None:
            turn.probing = True
            turn.failed_probes = min(turn.failed_probes + 1, 10)  # until it succeeds
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
        turn.probing, turn.error, turn.failed_probes, turn.rests_until = False, None, 0, 0

    def failed(self, index: int, error: ModelError) -> None:
        """Note a failure. Unless the request was at fault, the endpoint rests."""
        turn = self._turns[index]
        if error.kind not in RESTS:
            self.succeeded(index)
            return
        turn.probing = False
        turn.failures += 1
        turn.error = error.kind
        seconds = error.retry_after
        if error.kind == "rate_limit":
            seconds = RATE_LIMIT_SECONDS if seconds is None else max(seconds, 1.0)
        elif seconds is None:
            seconds = min(FAILURE_SECONDS * 2**turn.failed_probes, LONGEST_FAILURE_REST)
        turn.rests_until = self._clock() + min(seconds, LONGEST_REST)

    def abandoned(self, index: int) -> None:
        """Note that the call ended before the endpoint said anything."""
        self._turns[index].probing = False

    def probing(self, allowed: Collection[int]) -> bool:
        """Whether one of the allowed endpoints is being tried after its rest."""
        return any(self._turns[index].probing for index in allowed)

    def soonest(self, allowed: Collection[int]) -> tuple[int, float, ModelFailure]:
        """Return which allowed endpoint is ready first, in how many seconds, why it rests."""
        index = min(allowed, key=lambda index: self._turns[index].rests_until)
        turn = self._turns[index]
        return index, max(0.0, turn.rests_until - self._clock()), turn.error or "server"

    def states(self) -> list[EndpointState]:
        """Return how each endpoint does at this moment."""
        now = self._clock()
        return [
            EndpointState(
                name=turn.name,
                state="cooling"
                if turn.rests_until > now
                else ("ready" if turn.error is None else "probing"),
                seconds=max(0.0, turn.rests_until - now),
                error=turn.error,
                calls=turn.calls,
                failures=turn.failures,
            )
            for turn in self._turns
        ]

    def _ready(self, turn: _Turn, now: float) -> bool:
        return turn.rests_until <= now and not turn.probing
