"""Finds passages by their meaning: embeds what is new in the background, then compares."""

import asyncio
import time
from collections import OrderedDict
from contextvars import Context

import numpy as np
import structlog

from chatbot.errors import ModelError
from chatbot.knowledge.local.embedding import BATCH, Embedder, Vectors
from chatbot.knowledge.local.index import Index
from chatbot.knowledge.local.matrix import Scores
from chatbot.knowledge.local.vectors import VectorStore
from chatbot.tasks import end

_log = structlog.get_logger(__name__)

AT_ONCE = 4  # batches under way
SAVED_AT_ONCE = 2000  # passages: what an interruption can cost
REST_SECONDS = 30.0  # that a failed endpoint is left alone
_REMEMBERED = 256  # queries


class Similarity:
    """The similarity of passages to a query, as far as they have embeddings already.

    `threshold` is the cosine from which a passage counts as being about the query. An endpoint
    that failed is not asked for `rest_seconds`; `problem` says meanwhile why.
    """

    def __init__(
        self,
        embedder: Embedder,
        store: VectorStore,
        *,
        threshold: float,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self.threshold = threshold
        self.problem = ""
        self._embedder = embedder
        self._store = store
        self._rest_seconds = rest_seconds
        self._rests_until = 0.0
        self._loaded = False
        self._followed: Index | None = None  # all of its passages have embeddings
        self._work: asyncio.Task[None] | None = None
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Vectors]] = {}

    async def of(self, index: Index, query: str) -> Scores | None:
        """Return how close each passage is to the query; nothing if that cannot be told.

        Passages that have no embedding yet get one in the background.
        """
        self.follow(index)
        if self._resting():
            return None
        await self._open()
        try:
            vector = await self._vector(query)
        except ModelError as error:
            self._fail(error)
            return None
        self.problem = ""
        found = await asyncio.to_thread(self._store.similarities, index.keys, vector)
        if found is None:  # the model gives other vectors than it did
            self._followed = None
            self.follow(index)
        return found

    def follow(self, index: Index) -> None:
        """Begin to embed the passages that are new, unless that is under way."""
        if self._followed is index or self._resting():
            return
        if self._work is None or self._work.done():
            # no part of the turn that begins it: in a context, and so a trace, of its own
            self._work = asyncio.create_task(
                self._embed(index), name="knowledge embeddings", context=Context()
            )

    async def finished(self, index: Index) -> str:
        """Wait until all passages have embeddings; return why they have not, or ""."""
        self.follow(index)
        if self._work is not None:
            await asyncio.wait({self._work})
        return self.problem

    async def aclose(self) -> None:
        """End the work and close the connections; what was embedded is saved."""
        if self._work is not None:
            await end(self._work)
        for asking in list(self._asking.values()):
            await end(asking)
        await self._embedder.aclose()

    def _resting(self) -> bool:
        return time.monotonic() < self._rests_until

    def _fail(self, error: ModelError) -> None:
        if not self.problem:
            _log.warning("embeddings unavailable", reason=error.message)
        self.problem = f"Searched by words alone: {error.message}"
        self._rests_until = time.monotonic() + self._rest_seconds

    async def _vector(self, query: str) -> Vectors:
        """Return the query's vector; searches of the same query share one request."""
        if query in self._queries:
            self._queries.move_to_end(query)
            return self._queries[query]
        asking = self._asking.get(query)
        if asking is None or asking.done():
            asking = asyncio.create_task(self._embedder.query(query), name="query embedding")
            self._asking[query] = asking
            asking.add_done_callback(lambda done: self._asked(query, done))
        vector = await asyncio.shield(asking)
        self._queries[query] = vector
        if len(self._queries) > _REMEMBERED:
            self._queries.popitem(last=False)
        return vector

    def _asked(self, query: str, asking: asyncio.Task[Vectors]) -> None:
        self._asking.pop(query, None)
        if not asking.cancelled():
            asking.exception()  # whoever still waits for it is told

    async def _open(self) -> None:
        if not self._loaded:
            await asyncio.to_thread(self._store.load)
            self._loaded = True

    async def _embed(self, index: Index) -> None:
        await self._open()
        missing = (await asyncio.to_thread(self._store.missing, index.keys)).tolist()
        for start in range(0, len(missing), SAVED_AT_ONCE):
            if not await self._embed_some(index, missing[start : start + SAVED_AT_ONCE]):
                return
        await asyncio.to_thread(self._store.tidy, index.keys)
        self._followed = index
        if missing:
            self.problem = ""
            _log.info("passages embedded", passages=len(missing))

    async def _embed_some(self, index: Index, numbers: list[int]) -> bool:
        """Embed and save these passages, and return whether all of them could be."""
        turns = asyncio.Semaphore(AT_ONCE)
        done: list[tuple[list[int], Vectors]] = []

        async def embed(batch: list[int]) -> None:
            async with turns:
                texts = await asyncio.to_thread(_texts, index, batch)
                done.append((batch, await self._embedder.passages(texts)))

        batches = [numbers[at : at + BATCH] for at in range(0, len(numbers), BATCH)]
        try:
            async with asyncio.TaskGroup() as group:
                for batch in batches:
                    group.create_task(embed(batch))
        except* ModelError as errors:
            error = errors.exceptions[0]
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            self._fail(error)
        finally:  # also of what is interrupted, all that came is kept
            if done:
                keys = index.keys[[number for batch, _ in done for number in batch]]
                vectors = np.concatenate([each for _, each in done])
                await asyncio.to_thread(self._store.add, keys, vectors)
        return len(done) == len(batches)


def _texts(index: Index, numbers: list[int]) -> list[str]:
    pieces = [index.piece(number) for number in numbers]
    return ["\n".join(filter(None, (piece.location, piece.text))) for piece in pieces]
