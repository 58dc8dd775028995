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
# What says that the endpoint takes no calls at all. Anything else, and whatever breaks off an
# answer, may be due to one request: no reason to turn away the requests of everybody.
_FIRM: frozenset[ModelFailure] = frozenset({"rate_limit", "auth"})
_FIRM_BEFORE_AN_ANSWER: frozenset[ModelFailure] = frozenset({"connection", "timeout"})


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointState:
    """How an endpoint does: `cooling` for so many seconds, or `probing` after that.

    One that would rest for what may be the fault of one request is `ready` where no other is.
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
    firm: bool = False
    probing: bool = False
    error: ModelFailure | None = None
    calls: int = 0
    failures: int = 0


class Rotation:
    """Weighted round robin with cool-downs.

    A failure rests an endpoint for as long as it asked, else for 60 s after a rate limit and
    for 10 s after anything else. Afterwards one call alone tries it, and only its success
    opens the endpoint to the others. A failure that may be due to one request only has the
    other endpoints go first: where none is ready, the one that failed longest ago is asked.
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
        if ready:
            chosen = self._next_of(ready)
        elif doubtful := [i for i in allowed if _is_doubtful(self._turns[i])]:
            chosen = min(doubtful, key=lambda index: self._turns[index].rests_until)
        else:
            return None
        turn = self._turns[chosen]
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
        turn.probing, turn.error, turn.rests_until, turn.firm = False, None, 0, False

    def failed(self, index: int, error: ModelError, *, begun: bool = False) -> None:
        """Note a failure, of an answer that had `begun` or not.

        Unless the request was at fault, the endpoint rests.
        """
        turn = self._turns[index]
        if error.kind not in REASONS:
            self.succeeded(index)
            return
        turn.probing = False
        turn.failures += 1
        seconds = error.retry_after
        if seconds is None:
            seconds = RATE_LIMIT_SECONDS if error.kind == "rate_limit" else FAILURE_SECONDS
        now = self._clock()
        until = now + min(max(seconds, SHORTEST_REST), LONGEST_REST)
        firm = error.kind in _FIRM or error.retry_after is not None
        firm = firm or (error.kind in _FIRM_BEFORE_AN_ANSWER and not begun)
        if firm == turn.firm:
            counts = until >= turn.rests_until
        else:
            counts = firm or turn.rests_until <= now
        if counts:  # else another call has met something that lasts longer, or is more certain
            turn.rests_until, turn.error, turn.firm = until, error.kind, firm

    def abandoned(self, index: int) -> None:
        """Note that the call ended before the endpoint said anything."""
        self._turns[index].probing = False

    def waits(self, allowed: Collection[int]) -> dict[int, tuple[float, ModelFailure]]:
        """Return the seconds until each endpoint that failed is asked again, and why it rests.

        None where that is in doubt. One that another call is trying may be ready in a moment.
        """
        now = self._clock()
        found: dict[int, tuple[float, ModelFailure]] = {}
        for index in allowed:
            turn = self._turns[index]
            if turn.error is not None:
                shortest = SHORTEST_REST if turn.probing else 0.0
                wait = max(turn.rests_until - now, shortest)
                found[index] = 0.0 if _is_doubtful(turn) else wait, turn.error
        return found

    def states(self) -> list[EndpointState]:
        """Return how each endpoint does at this moment."""
        now = self._clock()
        some_ready = any(self._ready(turn, now) for turn in self._turns)
        return [self._state(turn, now, some_ready=some_ready) for turn in self._turns]

    def _state(self, turn: _Turn, now: float, *, some_ready: bool) -> EndpointState:
        wait = max(0.0, turn.rests_until - now)
        state: Literal["ready", "cooling", "probing"] = "ready"
        if _is_doubtful(turn) and not some_ready:
            wait = 0.0
        elif turn.error is not None:
            state = "cooling" if wait else "probing"
        return EndpointState(
            name=turn.name,
            state=state,
            seconds=round(wait, 1),
            error=turn.error,
            calls=turn.calls,
            failures=turn.failures,
        )

    def _next_of(self, ready: Collection[int]) -> int:
        for index in ready:
            self._turns[index].credit += self._turns[index].weight
        chosen = max(ready, key=lambda index: self._turns[index].credit)
        self._turns[chosen].credit -= sum(self._turns[index].weight for index in ready)
        return chosen

    def _ready(self, turn: _Turn, now: float) -> bool:
        return turn.rests_until <= now and not turn.probing


def _is_doubtful(turn: _Turn) -> bool:
    """Whether the endpoint failed, but may answer the next request at once."""
    return turn.error is not None and not turn.firm
