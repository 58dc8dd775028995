"""The embedded knowledge base: searches a folder of documents and notices its changes."""

import asyncio
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

from chatbot.domain import Assistant, Findings, Passage, SourceFile
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.addresses import address_of
from chatbot.knowledge.fusion import distinct, fuse
from chatbot.knowledge.local.indexing import Report
from chatbot.knowledge.local.reading import UnreadableError, read_bytes
from chatbot.knowledge.local.refresh import Snapshot, refresh
from chatbot.knowledge.local.search import THRESHOLD, by_meaning, by_words
from chatbot.knowledge.local.similarity import Similarity
from chatbot.knowledge.local.storage import Storage

EMBEDDINGS = "embeddings"  # the name by which their failures are told
FUSED = 30  # passages of each ranking that are fused
CHECK_SECONDS = 1.0  # how long the folder is trusted not to have changed
CHECK_SHARE = 0.1  # of the time may go into looking, so that a large folder is trusted longer
PATIENCE_SECONDS = 2.0  # how long a search waits for a change to be indexed
RETRY_SECONDS = 5.0
FIRST_SECONDS = 12.0  # and for the first index, less than whoever asks waits


class LocalKnowledgeBase:
    """Searches the documents below `folder`; its index is saved below `data_dir`, if any.

    Each sub-folder is an assistant, files directly in the folder are one more. The folder is
    looked at again when a search comes, at most once a second, in a thread. `documents_url` is
    where `document` is served: passages get an address below it. `similarity` finds passages
    by their meaning as well; it is owned. If `generous`, passages are given as well that share
    little with the query, for a model that judges them. `report` is told, in that thread, of
    each document that is read.
    """

    def __init__(  # noqa: PLR0913 - all but two have a default
        self,
        folder: Path,
        data_dir: Path | None,
        *,
        documents_url: str = "",
        similarity: Similarity | None = None,
        generous: bool = False,
        report: Report | None = None,
        first_seconds: float = FIRST_SECONDS,
    ) -> None:
        self._folder = folder
        self._documents_url = documents_url
        self._similarity = similarity
        self._by_words = partial(by_words, generous=generous)
        self._report = report
        self._first_seconds = first_seconds
        self._read = 0  # documents, since it was opened
        self._storage = Storage(data_dir, folder.absolute())
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="knowledge-index")
        self._snapshot: Snapshot | None = None
        self._due = 0.0
        self._running: Future[Snapshot] | None = None
        self._closing = Event()

    async def assistants(self) -> Sequence[Assistant]:
        """See `KnowledgeBase.assistants`."""
        return (await self._current()).assistants

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`."""
        snapshot = await self._current()
        present = {each.id: each.name for each in snapshot.assistants}
        failures = {
            each.name: f"The assistant {each.name} does not exist any more."
            for each in assistants
            if each.id not in present
        }
        if assistants and len(failures) == len(assistants):
            raise KnowledgeBaseError("not_found", " ".join(failures.values()))
        chosen = {each.id for each in assistants if each.id in present}
        found = await self._find(snapshot, query, chosen, limit)
        if self._similarity is not None and self._similarity.problem:
            failures[EMBEDDINGS] = self._similarity.problem
        return replace(
            found,
            passages=self._addressed(found.passages),
            uncertain=self._addressed(found.uncertain),
            failures=failures,
        )

    def _addressed(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        url = self._documents_url
        return (
            [replace(each, url=address_of(each, url)) for each in passages] if url else passages
        )

    async def _find(
        self, snapshot: Snapshot, query: str, chosen: Collection[str], limit: int
    ) -> Findings:
        """Return what the words find, and what the embeddings find, as one ranking."""
        similarity = self._similarity
        if similarity is None or not query.strip() or not chosen:
            return await asyncio.to_thread(self._by_words, snapshot, query, chosen, limit)
        words, similarities = await asyncio.gather(
            asyncio.to_thread(self._by_words, snapshot, query, chosen, FUSED),
            similarity.of(snapshot.index, query),
        )
        if similarities is None:
            return replace(
                words, passages=words.passages[:limit], uncertain=words.uncertain[:limit]
            )
        meaning = await asyncio.to_thread(
            by_meaning, snapshot, similarities, chosen, FUSED, similarity.threshold
        )
        certain = [each for each in words.passages if each.score >= THRESHOLD]
        if found := fuse((certain, meaning.passages), limit):
            every = distinct([*found, *words.passages, *words.uncertain])
            return Findings(passages=every[:limit])
        nearest = meaning.nearest or words.nearest
        return Findings(uncertain=words.uncertain[:limit], nearest=nearest)

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        """See `KnowledgeBase.document`. Only what can be cited is given."""
        snapshot = await self._current()
        if document_id not in snapshot.citable({each.id for each in assistants}):
            return None
        try:
            content = await asyncio.to_thread(read_bytes, self._folder, document_id)
        except UnreadableError as error:
            message = f"The document {document_id} cannot be given: {error}."
            raise KnowledgeBaseError("unavailable", message) from None
        return SourceFile(name=document_id.rsplit("/", 1)[-1], content=content)

    async def check(self) -> str:
        """See `KnowledgeBase.check`."""
        try:
            snapshot = await self._current()
        except KnowledgeBaseError as error:
            return error.message
        if not snapshot.assistants:
            return (
                f"There is no document in {self._folder}: put documents into it, "
                "or set KNOWLEDGE_DIR to another folder."
            )
        if self._similarity is not None:
            self._similarity.follow(snapshot.index)
            return self._similarity.problem
        return ""

    async def settled(self) -> str:
        """Wait until all passages have their embeddings; return why they have not, or ""."""
        if self._similarity is None:
            return ""
        return await self._similarity.finished((await self._current(whole=True)).index)

    async def skipped(self) -> dict[str, str]:
        """Return the files that are not searched, each with the reason, when all are read."""
        return dict((await self._current(whole=True)).skipped)

    async def aclose(self) -> None:
        """End the work on the index, also in the middle of it."""
        self._closing.set()
        if self._similarity is not None:
            await self._similarity.aclose()
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    async def _current(self, *, whole: bool = False) -> Snapshot:
        """Return the folder as it is now, or as it was while a change is still indexed.

        The first index is waited for to its end if `whole`.
        """
        if self._closing.is_set():
            message = "The knowledge base is closed."
            raise KnowledgeBaseError("unavailable", message)
        due = self._snapshot is None or time.monotonic() >= self._due
        if due and (self._running is None or self._running.done()):
            self._running = self._worker.submit(self._refresh)
        if self._running is not None and (due or not self._running.done()):
            waiting = asyncio.wrap_future(self._running)
            waiting.add_done_callback(_retrieved)
            # not cancelled with the turn that waits: others wait for it too
            await asyncio.wait({waiting}, timeout=self._patience(whole=whole))
            if waiting.done():
                return waiting.result()
        if self._snapshot is None:
            message = (
                f"The documents are being read for the first time: {self._read} so far. "
                "Ask again in a moment."
            )
            raise KnowledgeBaseError("unavailable", message, retry_after=RETRY_SECONDS)
        return self._snapshot

    def _patience(self, *, whole: bool) -> float | None:
        if whole and self._snapshot is None:
            return None
        return self._first_seconds if self._snapshot is None else PATIENCE_SECONDS

    def _note(self, document: str, problem: str | None) -> None:
        self._read += problem is not None
        if self._report is not None:
            self._report(document, problem)

    def _refresh(self) -> Snapshot:
        began, pause = time.thread_time(), CHECK_SECONDS
        try:
            snapshot = refresh(
                self._folder,
                self._storage,
                self._snapshot,
                closing=self._closing,
                report=self._note,
            )
            if self._snapshot is None:
                # Dictionaries and the index come into memory: the first search is not slower.
                everyone = {each.id for each in snapshot.assistants}
                by_words(snapshot, "预热 warm up", everyone, 1)
            if snapshot is self._snapshot:
                pause = max(pause, (time.thread_time() - began) / CHECK_SHARE)
            self._snapshot = snapshot
        except KnowledgeBaseError:
            self._snapshot = None  # what the folder held before is not there any more
            raise
        finally:
            self._due = time.monotonic() + pause
        return self._snapshot


def _retrieved(waiting: asyncio.Future[Snapshot]) -> None:
    """Take note of a failure that nobody waits for any more; the next search meets it."""
    if not waiting.cancelled():
        waiting.exception()
