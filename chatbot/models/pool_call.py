"""One call on its way through the endpoints of a pool."""

import asyncio
import logging
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from langchain_core.messages import AIMessageChunk

from chatbot.errors import ModelError, ModelFailure
from chatbot.models.endpoints import Endpoint
from chatbot.models.failures import in_words
from chatbot.models.rotation import REASONS, Rotation
from chatbot.models.time_limits import TimeLimits

RETRIES = 2
BACKOFF_SECONDS = 0.4
QUICK = 0.25  # of the time for the first token
MOST_NAMED = 5  # endpoints in one message
# Failures that pass by themselves, often within a second, unless they took long to show.
_PASSING: frozenset[ModelFailure] = frozenset({"connection", "server", "interrupted"})

# Hurried calls are worth little time, tentative ones are made before they are wanted.
Manner = Literal["patient", "hurried", "tentative"]

logger = logging.getLogger(__name__)


class PoolCall:
    """One call on its way through the endpoints that can do what it asks."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        rotation: Rotation,
        able: Collection[int],
        limits: TimeLimits,
        *,
        manner: Manner = "patient",
    ) -> None:
        self._hurried = manner == "hurried"
        self._tentative = manner == "tentative"
        self._endpoints = endpoints
        self._rotation = rotation
        self._able = able
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        self._deadline = self._clock() + limits.total
        self._untried = set(able)
        if self._tentative:  # an endpoint after its rest is tried by a call that is wanted
            self._untried -= rotation.waits(able).keys()
        self._failures: dict[int, ModelError] = {}
        self._spared: dict[int, ModelError] = {}
        self._passing: set[int] = set()
        self._began = self._clock()
        self._attempts: list[dict[str, str]] = []
        self._retries = 0
        self._asked: int | None = None
        self._refusal: ModelError | None = None  # the request's own fault

    def limits(self) -> TimeLimits:
        """Return the limits of the next attempt: all share the time of the call.

        In a hurry, an endpoint has half of that to begin, as long as another one is ready.
        """
        self._began = self._clock()
        first, left = self._limits.first_token, self._left
        if self._hurried and self._untried - self._rotation.waits(self._untried).keys():
            first = min(first, left / 2)
        return replace(self._limits, first_token=first, total=left)

    async def next_endpoint(self) -> int | None:
        """Return the endpoint to ask now, or nothing where the call has failed.

        An endpoint that another call is trying after its rest is not waited for.
        """
        if self._refusal is not None or self._left <= 0:
            return None
        index = self._untried_one()
        if index is None and self._retries < RETRIES and self._passing:
            pause = BACKOFF_SECONDS * 2**self._retries * random.uniform(0.5, 1)  # noqa: S311 - jitter
            if pause >= self._left:
                return None
            await asyncio.sleep(pause)
            if (index := self._untried_one()) is None:
                index = sorted(self._passing)[self._retries % len(self._passing)]
                self._rotation.retry(index)
            self._retries += 1
        return index

    def answers(self, index: int) -> None:
        """Note that an endpoint begins to answer."""
        self._rotation.succeeded(index)
        self._spared.pop(index, None)
        for spared, error in self._spared.items():
            self._rotation.failed(spared, error)

    def failed(self, index: int, error: ModelError, *, begun: bool, wanted: bool) -> None:
        """Note that an endpoint failed, before it had begun to answer or after.

        A tentative call that is not `wanted` holds nothing against it.
        """
        endpoint = self._endpoints[index]
        self._asked = index
        placed = error.message.replace(f"({endpoint.label})", f"({endpoint.place})")
        error.tell_in_full(placed)
        if self._hurried and error.kind == "timeout":  # it had less time than usual
            self._spared[index] = error
        elif wanted or not self._tentative:
            self._rotation.failed(index, error, begun=begun)
        self._failures[index] = error
        quick = self._clock() - self._began <= QUICK * self._limits.first_token
        passes = error.kind in _PASSING and error.retry_after is None and quick
        if passes and not self._tentative:
            self._passing.add(index)
        else:
            self._passing.discard(index)
        if error.kind not in REASONS:
            self._refusal = error
        self._attempts.append({"endpoint": endpoint.name, "kind": error.kind})
        facts = {
            "endpoint": endpoint.place,
            "kind": error.kind,
            "retry_after": error.retry_after,
            "cause": type(error.__cause__).__name__ if error.__cause__ else None,
        }
        logger.warning("a model endpoint failed", extra=facts)

    def label(self, chunk: AIMessageChunk, index: int) -> None:
        """Write on the first chunk which endpoint answers and which failed before.

        On one alone: LangChain puts texts of several together.
        """
        endpoint = self._endpoints[index]
        chunk.response_metadata |= {"endpoint": endpoint.name, "asked_model": endpoint.model}
        if self._attempts:
            chunk.response_metadata["attempts"] = list(self._attempts)

    def labelled(self, error: ModelError) -> ModelError:
        """Write on the error that ends the call whom it asked."""
        error.attempts = list(self._attempts)
        if self._asked is not None:
            endpoint = self._endpoints[self._asked]
            error.endpoint, error.model = endpoint.name, endpoint.model
        return error

    def retry_after(self) -> float | None:
        """Return in how many seconds one of the endpoints is asked again, if not at once."""
        waits = self._rotation.waits(self._able)
        seconds = min(waits[index][0] if index in waits else 0.0 for index in self._able)
        return round(seconds, 1) or None

    def error(self) -> ModelError:
        """Return why nothing answered, endpoint by endpoint, and when to try again."""
        if self._refusal is not None:
            return self._refusal
        retry_after = self.retry_after()
        if len(self._able) == 1 and self._failures:
            [error] = self._failures.values()
            error.retry_after = retry_after
            return error
        reasons = {index: error.kind for index, error in self._failures.items()}
        waits = self._rotation.waits(self._able)
        reasons |= {index: kind for index, (_, kind) in waits.items()}
        when = f" in {in_words(retry_after)}" if retry_after else ""
        labels = [endpoint.label for endpoint in self._endpoints]
        places = [endpoint.place for endpoint in self._endpoints]
        message, in_full = (
            f"No language model can answer at the moment ({_told(reasons, names)}). "
            f"Try again{when}."
            for names in (labels, places)
        )
        # A refused key does not mend itself: where there is another reason, that one counts.
        kinds = sorted(reasons.values(), key=lambda kind: kind == "auth")
        failed = ModelError(kinds[0] if kinds else "timeout", message, retry_after=retry_after)
        failed.tell_in_full(in_full)
        return failed

    def _untried_one(self) -> int | None:
        index = self._rotation.choose(self._untried)
        self._untried.discard(index)
        return index

    @property
    def _left(self) -> float:
        return self._deadline - self._clock()


def _told(reasons: Mapping[int, ModelFailure], names: Sequence[str]) -> str:
    told = [f"{names[index]}: {REASONS[kind]}" for index, kind in reasons.items()]
    more = len(told) - MOST_NAMED
    return "; ".join([*told[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])
