"""Brings what is known about the folder up to date."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import numpy as np
import structlog
from numpy.typing import NDArray

from chatbot.domain import Assistant, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.local.folder import ROOT, Listing, list_folder
from chatbot.knowledge.local.index import Document, Index
from chatbot.knowledge.local.indexing import Indexing, Report
from chatbot.knowledge.local.reading import UnreadableError, read_profile
from chatbot.knowledge.local.storage import Storage

_log = structlog.get_logger(__name__)

_TITLES = 12  # that describe an assistant without a description


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The folder at one moment: what lies in it, its assistants, and the index over it."""

    listing: Listing
    index: Index
    assistants: tuple[Assistant, ...]
    owners: NDArray[np.int32]  # the number of each passage's assistant
    stops: NDArray[np.int64]  # of the documents
    skipped: dict[str, str]

    def belongs_to(self, assistants: Collection[str]) -> NDArray[np.bool_]:
        """Return which passages belong to the assistants with these ids."""
        chosen = [each.id in assistants for each in self.assistants]
        # the last place is for the passages of nobody, whose owner is -1
        return np.array([*chosen, False])[self.owners]

    def citable(self, assistants: Collection[str]) -> frozenset[str]:
        """Return the names of the documents of these assistants that have passages."""
        return frozenset(
            each.name
            for each in self.index.documents
            if each.stop > each.start
            and self.assistants[self.owners[each.start]].id in assistants
        )

    def document(self, number: int) -> Document:
        """Return the document that the passage stands in."""
        return self.index.documents[int(np.searchsorted(self.stops, number, side="right"))]

    def passage(self, number: int, score: float) -> Passage:
        """Return one passage with its score."""
        document = self.document(number)
        piece = self.index.piece(number)
        owner = self.assistants[self.owners[number]]
        inside = document.name if owner.id == ROOT else document.name.partition("/")[2]
        return Passage(
            id=f"{document.name}#{number - document.start + 1}",
            text=piece.text,
            document=inside,
            document_id=document.name,
            assistant=owner.name,
            score=round(score, 4),
            location=piece.location,
        )


def refresh(
    folder: Path,
    storage: Storage,
    before: Snapshot | None,
    *,
    closing: Event | None = None,
    report: Report | None = None,
) -> Snapshot:
    """Return the folder as it is now, reading only what is new or changed.

    `report` is told of each document that is read.

    Raises:
        KnowledgeBaseError: The folder cannot be listed, or `closing` was set meanwhile.
    """
    try:
        listing = list_folder(folder)
    except OSError as error:
        raise _unlistable(folder, error) from None
    if before and listing == before.listing:
        return before
    earlier = before.index if before else storage.open()
    index = Indexing(folder, storage, closing=closing, report=report).run(listing, earlier)
    skipped = dict(listing.skipped)
    skipped.update({each.name: each.problem for each in index.documents if each.problem})
    assistants = _assistants(folder, listing, index, skipped)
    known = before.skipped if before else {}
    for name, reason in skipped.items():
        if known.get(name) != reason:
            _log.warning("document skipped", document=name, reason=reason)
    return Snapshot(
        listing,
        index,
        assistants,
        owners=_owners(index, assistants),
        stops=np.array([each.stop for each in index.documents], dtype=np.int64),
        skipped=skipped,
    )


def _unlistable(folder: Path, error: OSError) -> KnowledgeBaseError:
    if isinstance(error, FileNotFoundError):
        reason = "does not exist: create it"
    elif isinstance(error, NotADirectoryError):
        reason = "is not a folder: choose one"
    else:
        reason = f"cannot be read ({error.strerror}): allow it"
    message = f"The knowledge folder {folder} {reason}, or set KNOWLEDGE_DIR to another one."
    return KnowledgeBaseError("not_found", message)


def _assistants(
    folder: Path, listing: Listing, index: Index, skipped: dict[str, str]
) -> tuple[Assistant, ...]:
    """Return an assistant for each sub-folder with documents, and one for the folder itself."""
    titles: dict[str, list[str]] = {}
    for document in index.documents:
        if document.stop > document.start:
            title = document.title or document.stem
            titles.setdefault(document.assistant, []).append(title)
    profiles: dict[str, tuple[str, str]] = {}
    for file in listing.profiles:
        try:
            profiles[file.assistant] = read_profile(folder, file)
        except UnreadableError as error:
            skipped[file.name] = str(error)
    found = []
    names: set[str] = set()
    for id_, known in titles.items():
        name, description = profiles.get(id_, ("", ""))
        name = name or (folder.resolve().name if id_ == ROOT else id_)
        if name in names:  # a name stands for one assistant
            name = f"{name} ({id_})"
        names.add(name)
        summary = description or "; ".join(dict.fromkeys(known[:_TITLES]))
        found.append(Assistant(id=id_, name=name, description=summary))
    return tuple(found)


def _owners(index: Index, assistants: Sequence[Assistant]) -> NDArray[np.int32]:
    numbers = {each.id: number for number, each in enumerate(assistants)}
    owners = np.full(index.size, -1, dtype=np.int32)
    for document in index.documents:
        if document.stop > document.start:
            owners[document.start : document.stop] = numbers[document.assistant]
    return owners
