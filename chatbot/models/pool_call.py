"""One call on its way through the endpoints of a pool."""

import asyncio
import logging
import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from langchain_core.messages import AIMessageChunk

from chatbot.errors import ModelError, ModelFailure
from chatbot.models.rotation import RESTS, Rotation
from chatbot.models.time_limits import TimeLimits

RETRIES = 2
BACKOFF_SECONDS = 0.4
POLL_SECONDS = 0.05
_WORDS: Mapping[ModelFailure, str] = {
    "rate_limit": "too many requests",
    "auth": "the API key was refused",
    "timeout": "no answer in time",
    "connection": "no connection",
    "server": "an error of the server",
    "protocol": "a reply that is not an answer",
    "interrupted": "a cut answer",
}
# Failures that pass by themselves, often within a second.
_PASSING: frozenset[ModelFailure] = frozenset({"connection", "server", "interrupted"})

logger = logging.getLogger(__name__)


class PoolCall:
    """One call on its way through the endpoints that can do what it asks."""

    def __init__(
        self,
        names: Sequence[str],
        rotation: Rotation,
        able: Collection[int],
        limits: TimeLimits,
    ) -> None:
        self._names = names
        self._rotation = rotation
        self._able = able
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        self._deadline = self._clock() + limits.total
        self._untried = set(able)
        self._failures: dict[int, ModelError] = {}
        self._attempts: list[dict[str, str]] = []
        self._retries = 0

    def limits(self) -> TimeLimits:
        """Return the limits of the next attempt: all share the time of the call."""
        return replace(self._limits, total=self._left)

    async def next_endpoint(self) -> int | None:
        """Return the endpoint to ask now, or nothing where the call has failed."""
        if any(error.kind not in RESTS for error in self._failures.values()):
            return None
        while self._left > 0:
            if (index := self._rotation.choose(self._untried)) is not None:
                self._untried.discard(index)
                return index
            if not self._rotation.probing(self._untried):
                return await self._again()
            await asyncio.sleep(POLL_SECONDS)  # another call finds out how it does
        return None

    def failed(self, index: int, error: ModelError) -> None:
        """Note that an endpoint failed."""
        self._rotation.failed(index, error)
        self._failures[index] = error
        self._attempts.append({"endpoint": self._names[index], "kind": error.kind})
        facts = {
            "endpoint": self._names[index],
            "kind": error.kind,
            "retry_after": error.retry_after,
            "cause": type(error.__cause__).__name__ if error.__cause__ else None,
        }
        logger.warning("a model endpoint failed", extra=facts)

    def label(self, chunk: AIMessageChunk, index: int) -> None:
        """Write on the last chunk which endpoint answered and which failed before."""
        chunk.response_metadata["endpoint"] = self._names[index]
        if self._attempts:
            chunk.response_metadata["attempts"] = self._attempts

    def error(self) -> ModelError:
        """Return why nothing answered, and when the first endpoint is ready again."""
        index, seconds, kind = self._rotation.soonest(self._able)
        if self._failures:
            last = list(self._failures.values())[-1]
            if last.kind not in RESTS:
                return last
            error = self._failures.get(index, last)
            return ModelError(error.kind, error.message, retry_after=round(seconds, 1))
        message = (
            f"Every language model that is set rests after a failure ({_WORDS[kind]}). "
            f"Try again in {max(1, math.ceil(seconds))} seconds."
        )
        return ModelError(kind, message, retry_after=round(seconds, 1))

    async def _again(self) -> int | None:
        """Return an endpoint whose failure in this call may have passed, after a pause."""
        passing = [
            index
            for index, error in self._failures.items()
            if error.kind in _PASSING and error.retry_after is None
        ]
        if not passing or self._retries == RETRIES:
            return None
        pause = BACKOFF_SECONDS * 2**self._retries * random.uniform(0.5, 1)  # noqa: S311 - jitter
        if pause >= self._left:
            return None
        await asyncio.sleep(pause)
        index = passing[self._retries % len(passing)]
        self._retries += 1
        self._rotation.retry(index)
        return index

    @property
    def _left(self) -> float:
        return self._deadline - self._clock()
