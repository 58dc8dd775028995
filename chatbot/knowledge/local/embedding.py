"""Embeddings of texts, from an OpenAI-compatible endpoint."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chatbot.errors import ModelError
from chatbot.models.failures import model_error
from chatbot.models.time_limits import TimeLimits, Timer

if TYPE_CHECKING:
    from chatbot.models.endpoint_client import EndpointClient

Vectors = NDArray[np.float32]

BATCH = 10  # texts of a request: no known endpoint takes fewer
BATCH_SECONDS = 60.0
QUERY_SECONDS = 3.0  # the words are searched anyway, so nobody waits long
TRIES = 3
PAUSE_SECONDS = 1.0
LONGEST_PAUSE = 30.0
_LONGEST_TEXT = 6000  # characters
_REPLY_BYTES = 64 * 2**20
_OF_ONE_TEXT = frozenset({"bad_request", "context_too_long", "content_filter"})


class Embedder:
    """Asks one model of one endpoint. Vectors have length 1, or 0 for a refused text.

    Owns the client.
    """

    def __init__(
        self,
        client: "EndpointClient",
        model: str,
        *,
        query_seconds: float = QUERY_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self.model = model
        self._client = client
        self._query_seconds = query_seconds
        self._pause_seconds = pause_seconds

    async def query(self, text: str) -> Vectors:
        """Return the vector of one query, at once or not at all.

        Raises:
            ModelError: The endpoint did not give it.
        """
        vector: Vectors = (await self._ask([text], self._query_seconds))[0]
        return vector

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text; failures that may pass are waited out.

        Raises:
            ModelError: The endpoint did not give them.
        """
        for attempt in range(1, TRIES + 1):
            try:
                return await self._ask(texts, BATCH_SECONDS)
            except ModelError as error:
                if error.kind in _OF_ONE_TEXT:
                    return await self._each_alone(texts, error)
                if not error.retryable or attempt == TRIES:
                    raise
                pause = error.retry_after or self._pause_seconds * 2**attempt
                await asyncio.sleep(min(pause, LONGEST_PAUSE))
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _each_alone(self, texts: Sequence[str], error: ModelError) -> Vectors:
        """Find the texts that the endpoint refuses, so that the others are not lost."""
        found: list[Vectors | None] = []
        for text in texts:
            try:
                found.append((await self._ask([text], BATCH_SECONDS))[0])
            except ModelError as refused:
                if refused.kind not in _OF_ONE_TEXT:
                    raise
                found.append(None)
        known = [each for each in found if each is not None]
        if not known:  # not the texts: whatever is sent is refused
            raise error
        nothing = np.zeros_like(known[0])
        return np.array([nothing if each is None else each for each in found])

    async def _ask(self, texts: Sequence[str], seconds: float) -> Vectors:
        body = {
            "model": self.model,
            "input": [text[:_LONGEST_TEXT] or " " for text in texts],
            "encoding_format": "float",
        }
        timer = Timer(TimeLimits(first_token=seconds, between_tokens=seconds, total=seconds))
        content = b""
        async with self._client.post("/embeddings", body, timer) as received:
            while part := await received.read():
                content += part
                if len(content) > _REPLY_BYTES:
                    raise model_error("protocol", self._client.name)
        try:
            return _vectors(json.loads(content), len(texts))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise model_error("protocol", self._client.name) from None


def _vectors(reply: Any, count: int) -> Vectors:  # noqa: ANN401 - JSON from the wire
    """Return the vectors in the order of the texts.

    Raises:
        ValueError: The reply has another shape, as do the other errors of plain access.
    """
    rows = sorted(reply["data"], key=lambda row: int(row["index"]))
    vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
    if [row["index"] for row in rows] != list(range(count)) or vectors.ndim != 2:  # noqa: PLR2004
        message = "not one vector for each text"
        raise ValueError(message)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        message = "vectors without a direction"
        raise ValueError(message)
    return np.asarray(vectors / lengths, dtype=np.float32)
