"""Brings files into a dataset of RAGFlow and waits until they can be searched."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.creation import dataset_named
from chatbot.knowledge.ragflow.documents import Documents
from chatbot.knowledge.ragflow.errors import RagflowError, one_line
from chatbot.knowledge.ragflow.transport import RagflowTransport
from chatbot.tasks import end

POLL_SECONDS = 1.0
UPLOADS_AT_ONCE = 3
GRACE_SECONDS = 5.0
NAME_BYTES = 255
OUTAGE_SECONDS = 60.0
_RUNNING = "currently being processed"

State = Literal["waiting", "uploading", "parsing", "done", "unchanged", "failed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a file is, from 0 to 1; `message` says why it failed."""

    name: str
    state: State = "waiting"
    fraction: float = 0.0
    message: str = ""

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen to the file."""
        return self.state in {"done", "unchanged", "failed"}


Report = Callable[[Progress], None]


@dataclass(kw_only=True)
class Ingestion:
    """Files on their way into one dataset. Run it again to go on where it was stopped.

    What the dataset has already under the same name and with the same content is not uploaded
    again, only waited for; a changed file takes the place of the old one. `report` is called
    with each step of each file.
    """

    transport: RagflowTransport
    files: Mapping[str, Path]
    dataset: str
    report: Report = lambda _: None
    poll_seconds: float = POLL_SECONDS
    timeout_seconds: float = 3600.0
    _progress: dict[str, Progress] = field(default_factory=dict, init=False)
    _ids: dict[str, str] = field(default_factory=dict, init=False)
    _unparsed: list[str] = field(default_factory=list, init=False)

    async def run(self) -> Sequence[Progress]:
        """Create the dataset if it is missing, upload, parse, wait; return how each file ended.

        Raises:
            RagflowError: The dataset could not be found or created, or RAGFlow went away.
        """
        documents = Documents(self.transport, await dataset_named(self.transport, self.dataset))
        existing = {document.name: document for document in await documents.all()}
        for name in self.files:
            self._tell(Progress(name=name))
        turns = asyncio.Semaphore(UPLOADS_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for name in self.files:
                bring = self._bring(documents, name, existing.get(name), turns)
                group.create_task(bring)
        await self._parse(documents)
        await self._wait(documents)
        return [self._progress[name] for name in self.files]

    async def _bring(
        self,
        documents: Documents,
        name: str,
        old: wire.Document | None,
        turns: asyncio.Semaphore,
    ) -> None:
        async with turns:
            try:
                await self._bring_in_turn(documents, name, old)
            except RagflowError as error:
                self._fail(name, error.detail or error.message)
            except OSError as error:
                self._fail(name, f"The file cannot be read: {error.strerror or error}.")

    async def _bring_in_turn(
        self, documents: Documents, name: str, old: wire.Document | None
    ) -> None:
        path = self.files[name]
        stat = await asyncio.to_thread(path.stat)
        if problem := _problem(name, stat.st_size):
            self._fail(name, problem)
            return
        if old is not None:
            if await self._is_same(documents, old, path):
                self._ids[name] = old.id
                if old.run == "DONE":
                    self._tell(Progress(name=name, state="unchanged", fraction=1.0))
                elif old.run != "RUNNING":
                    self._unparsed.append(name)
                return
            await documents.delete([old.id])
        self._tell(Progress(name=name, state="uploading"))
        self._ids[name] = (await self._upload(documents, name, path)).id
        self._unparsed.append(name)

    async def _upload(self, documents: Documents, name: str, path: Path) -> wire.Document:
        """Upload the file. One that is under way gets a moment to arrive when all is stopped.

        RAGFlow keeps what it has received, also for whoever has hung up: run again at once, the
        file would not be in the list yet and go up a second time.
        """
        file = await asyncio.to_thread(path.open, "rb")
        uploading = asyncio.create_task(documents.upload(name, file))
        try:
            return await asyncio.shield(uploading)
        except asyncio.CancelledError:
            await asyncio.wait({uploading}, timeout=GRACE_SECONDS)
            raise
        finally:
            await end(uploading)
            file.close()

    async def _is_same(self, documents: Documents, old: wire.Document, path: Path) -> bool:
        """Compare the contents, where neither size nor time decides."""
        stat = await asyncio.to_thread(path.stat)
        if old.size != stat.st_size:
            return False
        if not old.created or stat.st_mtime < old.created:
            return True
        try:
            uploaded = await documents.download(old.id)
        except RagflowError:
            return True
        return uploaded == await asyncio.to_thread(path.read_bytes)

    async def _parse(self, documents: Documents) -> None:
        for first in range(0, len(self._unparsed), wire.PAGE_SIZE):
            names = self._unparsed[first : first + wire.PAGE_SIZE]
            try:
                await documents.parse([self._ids[name] for name in names])
            except RagflowError:
                for name in names:
                    await self._parse_one(documents, name)

    async def _parse_one(self, documents: Documents, name: str) -> None:
        try:
            await documents.parse([self._ids[name]])
        except RagflowError as error:
            if _RUNNING not in error.detail:
                self._fail(name, error.detail or error.message)

    async def _wait(self, documents: Documents) -> None:
        deadline = time.monotonic() + self.timeout_seconds
        answered = time.monotonic()
        while pending := [name for name in self._ids if not self._progress[name].is_final]:
            asked = time.monotonic()
            try:
                found = {document.id: document for document in await documents.all()}
            except RagflowError as error:
                if not error.transient or time.monotonic() - answered > OUTAGE_SECONDS:
                    raise
            else:
                answered = time.monotonic()
                for name in pending:
                    self._tell(_state(name, found.get(self._ids[name])))
            if time.monotonic() > deadline:
                self._give_up()
            elif not all(self._progress[name].is_final for name in pending):
                # a list of very many pages takes long, and is not asked for all the time
                await asyncio.sleep(max(self.poll_seconds, time.monotonic() - asked))

    def _give_up(self) -> None:
        for name in self._ids:
            if not self._progress[name].is_final:
                seconds = f"{self.timeout_seconds:g} seconds"
                self._fail(name, f"Still not parsed after {seconds}. Run it again to wait on.")

    def _fail(self, name: str, message: str) -> None:
        self._tell(Progress(name=name, state="failed", message=one_line(message)))

    def _tell(self, progress: Progress) -> None:
        if self._progress.get(progress.name) != progress:
            self._progress[progress.name] = progress
            self.report(progress)


def _problem(name: str, size: int) -> str:
    if size == 0:
        return "The file is empty."
    if len(name.encode(errors="replace")) > NAME_BYTES:
        return f"Its name is longer than {NAME_BYTES} bytes, which RAGFlow does not take."
    if not name.isprintable():
        return "Its name has characters that are not printable."
    return ""


def _state(name: str, document: wire.Document | None) -> Progress:
    if document is None:
        return Progress(
            name=name, state="failed", message="It was deleted in RAGFlow meanwhile."
        )
    if document.run == "DONE":
        return Progress(name=name, state="done", fraction=1.0)
    if document.run == "FAIL":
        message = document.message or "RAGFlow does not say why."
        return Progress(name=name, state="failed", message=one_line(message))
    if document.run == "CANCEL":
        return Progress(name=name, state="failed", message="Parsing was cancelled in RAGFlow.")
    return Progress(name=name, state="parsing", fraction=document.progress)
