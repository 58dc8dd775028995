"""Brings files into the folder of the embedded knowledge base."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chatbot.errors import InputError
from chatbot.knowledge.local.folder import largest, refusal
from chatbot.knowledge.local.knowledge_base import LocalKnowledgeBase
from chatbot.knowledge.local.similarity import Similarity

NAME_BYTES = 255

State = Literal["waiting", "copying", "reading", "done", "unchanged", "failed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a file is, from 0 to 1; `message` says why it failed."""

    name: str
    state: State = "waiting"
    fraction: float = 0.0
    message: str = ""


@dataclass(kw_only=True)
class Ingestion:
    """Files on their way into a sub-folder of `folder`, which is an assistant.

    Run it again to go on where it was stopped: what is there already is neither copied nor read
    again. A file of the same name is replaced. `report` is called with each step of each file,
    from more than one thread. `problem` says at last why passages have no embeddings, or "".
    """

    files: Mapping[str, Path]
    folder: Path
    dataset: str
    data_dir: Path | None
    similarity: Similarity | None = None
    report: Callable[[Progress], None] = lambda _: None
    problem: str = field(default="", init=False)
    _taken: dict[str, Progress] = field(default_factory=dict, init=False)
    _ended: dict[str, Progress] = field(default_factory=dict, init=False)

    async def run(self) -> Sequence[Progress]:
        """Copy and index the files; return how each ended.

        Raises:
            InputError: `dataset` cannot be the name of a folder.
            OSError: The folder cannot be written.
        """
        target = self.folder / _checked_name(self.dataset)
        await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
        for name in self.files:
            self.report(Progress(name=name, state="copying"))
            taken = await asyncio.to_thread(_take, name, self.files[name], target)
            self._taken[name] = taken
            if taken.state == "failed":
                self._tell(taken)
        knowledge_base = LocalKnowledgeBase(
            self.folder, self.data_dir, similarity=self.similarity, report=self._hear
        )
        try:
            skipped = await knowledge_base.skipped()
            self.problem = await knowledge_base.settled()
        finally:
            await knowledge_base.aclose()
        for name in self.files:
            self._end(name, skipped.get(f"{self.dataset}/{name}", ""))
        return [self._ended[name] for name in self.files]

    def _hear(self, document: str, problem: str | None) -> None:
        """Pass on what is told about a document, if it is one of the files."""
        dataset, _, name = document.partition("/")
        if dataset != self.dataset or name not in self._taken:
            return
        if problem is None:
            self.report(Progress(name=name, state="reading", fraction=0.5))
        else:
            self._end(name, problem)

    def _end(self, name: str, problem: str) -> None:
        if name in self._ended:
            return
        if problem:
            message = f"It cannot be searched: {problem}."
            self._tell(Progress(name=name, state="failed", message=message))
        else:
            self._tell(self._taken[name])

    def _tell(self, ended: Progress) -> None:
        self._ended[ended.name] = ended
        self.report(ended)


def _checked_name(name: str) -> str:
    fits = 0 < len(name.encode(errors="replace")) <= NAME_BYTES and name.isprintable()
    if (
        not fits
        or name.startswith(".")
        or set(name) & set('/\\:*?"<>|')
        or name != name.strip()
    ):
        message = f"{name!r} cannot be the name of a folder: choose a simpler one."
        raise InputError(message)
    return name


def _take(name: str, source: Path, target: Path) -> Progress:
    """Copy the file, unless the same is there already."""
    try:
        size = source.stat().st_size
        problem = refusal(name, size) or _unfit(name)
        if problem:
            return _failed(name, f"It is not taken: {problem}.")
        with source.open("rb") as file:
            content = file.read(largest(name) + 1)
    except OSError as error:
        return _failed(name, f"The file cannot be read: {error.strerror}.")
    with suppress(OSError):
        if (target / name).read_bytes() == content:
            return Progress(name=name, state="unchanged", fraction=1.0)
    _write(target / name, content)
    return Progress(name=name, state="done", fraction=1.0)


def _unfit(name: str) -> str:
    if len(name.encode(errors="replace")) > NAME_BYTES:
        return f"its name is longer than {NAME_BYTES} bytes"
    return "" if name.isprintable() else "its name has characters that cannot be shown"


def _failed(name: str, message: str) -> Progress:
    return Progress(name=name, state="failed", message=message)


def _write(path: Path, content: bytes) -> None:
    """Write the file such that nobody ever reads half of it."""
    handle, half = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(half).chmod(0o644)
        Path(half).replace(path)
    except BaseException:
        Path(half).unlink(missing_ok=True)
        raise
