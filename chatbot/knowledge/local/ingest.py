"""Brings files into the folder of the embedded knowledge base."""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chatbot.errors import InputError
from chatbot.knowledge.local.folder import LARGEST, MARKDOWN, PLAIN
from chatbot.knowledge.local.knowledge_base import LocalKnowledgeBase

NAME_BYTES = 255


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """How it went with one file; `message` says why it failed."""

    name: str
    state: Literal["done", "unchanged", "failed"]
    message: str = ""


async def ingest(
    files: Mapping[str, Path], *, folder: Path, dataset: str, data_dir: Path
) -> Sequence[Ingested]:
    """Copy the files into a sub-folder, which is an assistant, and index them.

    A file of the same name is replaced.

    Raises:
        InputError: `dataset` cannot be the name of a folder.
        OSError: The folder cannot be written.
    """
    target = folder / _checked_name(dataset)
    await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
    taken = [await asyncio.to_thread(_take, name, files[name], target) for name in files]
    knowledge_base = LocalKnowledgeBase(folder, data_dir)
    try:
        skipped = await knowledge_base.skipped()
    finally:
        await knowledge_base.aclose()
    return [_as_indexed(each, skipped.get(f"{dataset}/{each.name}", "")) for each in taken]


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


def _take(name: str, source: Path, target: Path) -> Ingested:
    if source.suffix.lower() not in MARKDOWN | PLAIN:
        message = "Only Markdown and text files are read; convert it first."
        return Ingested(name=name, state="failed", message=message)
    try:
        if source.stat().st_size > LARGEST:
            message = f"The file is larger than {LARGEST // 2**20} MiB."
            return Ingested(name=name, state="failed", message=message)
        content = source.read_bytes()
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        return Ingested(name=name, state="failed", message=message)
    with suppress(OSError):
        if (target / name).read_bytes() == content:
            return Ingested(name=name, state="unchanged")
    _write(target / name, content)
    return Ingested(name=name, state="done")


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


def _as_indexed(taken: Ingested, problem: str) -> Ingested:
    if not problem or taken.state == "failed":
        return taken
    return Ingested(
        name=taken.name, state="failed", message=f"It cannot be searched: {problem}."
    )
