"""The ranked index over all passages, in memory or mapped from the files it is saved in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from chatbot.knowledge.local.cutting import Piece
from chatbot.knowledge.local.folder import File
from chatbot.knowledge.local.matrix import Ids, Matrix, Offsets, Scores
from chatbot.text import tokens

VERSION = 3  # of what is saved; raise it when cutting or tokens change


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was indexed. Its passages have the numbers `start` to `stop`.

    `problem` says why it gave none, or is empty.
    """

    name: str
    size: int
    modified: int
    digest: str
    title: str = ""
    problem: str = ""
    start: int = 0
    stop: int = 0

    @property
    def assistant(self) -> str:
        """The id of the assistant it belongs to."""
        return File(self.name, self.size, self.modified).assistant


@dataclass(frozen=True, slots=True)
class Index:
    """Documents, passages and the matrix that ranks them.

    `passages` holds the pieces as JSON, one after the other at `offsets`; `words` the numbers
    of the words of each passage at `word_starts`, from which the next index is made without
    reading again. `vocabulary` numbers the words.
    """

    documents: tuple[Document, ...]
    passages: memoryview
    offsets: Offsets
    words: Ids
    word_starts: Offsets
    vocabulary: Mapping[str, int]
    matrix: Matrix

    @property
    def size(self) -> int:
        """How many passages there are."""
        return len(self.offsets) - 1

    def piece(self, number: int) -> Piece:
        """Return one passage."""
        start, stop = self.offsets[number], self.offsets[number + 1]
        location, text = json.loads(bytes(self.passages[start:stop]))
        return Piece(location, text)

    def rank(self, query: Mapping[str, float]) -> Scores:
        """Return the BM25 score of every passage for the weighed words of a query."""
        known = {
            self.vocabulary[word]: weight
            for word, weight in query.items()
            if word in self.vocabulary
        }
        return self.matrix.rank(known, self.size)

    def fingerprint(self) -> str:
        """Return a name for exactly these contents."""
        digest = sha256(str(VERSION).encode())
        for document in self.documents:
            digest.update(json.dumps([document.name, document.digest]).encode())
        return digest.hexdigest()[:32]

    def manifest(self) -> dict[str, Any]:
        """Return the list of documents as plain JSON."""
        return {"version": VERSION, "documents": [asdict(each) for each in self.documents]}


class Builder:
    """Makes an index, taking over from an earlier one what did not change."""

    def __init__(self, earlier: Index | None = None) -> None:
        self._earlier = earlier
        self._vocabulary = dict(earlier.vocabulary) if earlier else {}
        self._known = (
            {(each.digest, each.name): each for each in earlier.documents} if earlier else {}
        )
        self._documents: list[Document] = []
        self._encoded: list[bytes] = []
        self._words: list[Ids] = []

    def keep(self, document: Document) -> str:
        """Take over a document and its passages, and return why it has none, or ""."""
        assert self._earlier is not None  # noqa: S101 - there is nothing to keep without one
        start = len(self._encoded)
        for number in range(document.start, document.stop):
            begin, end = self._earlier.offsets[number], self._earlier.offsets[number + 1]
            self._encoded.append(bytes(self._earlier.passages[begin:end]))
            begin, end = self._earlier.word_starts[number : number + 2]
            self._words.append(self._earlier.words[begin:end])
        return self._place(document, start)

    def known(self, document: Document) -> Document | None:
        """Return the document as the earlier index has it, if the content is the same."""
        return self._known.get((document.digest, document.name))

    def add(self, document: Document, title: str, pieces: Sequence[Piece]) -> str:
        """Add a new or changed document and return why it has no passages, or ""."""
        start = len(self._encoded)
        stem = document.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        for piece in pieces:
            self._encoded.append(json.dumps([piece.location, piece.text]).encode())
            found = tokens(f"{stem}\n{piece.location}\n{piece.text}")
            self._words.append(
                np.fromiter(
                    (
                        self._vocabulary.setdefault(token, len(self._vocabulary))
                        for token in found
                    ),
                    dtype=np.int32,
                )
            )
        problem = "" if pieces else "it holds no text below its headings"
        return self._place(document, start, title=title, problem=problem)

    def skip(self, document: Document, problem: str) -> str:
        """Remember a document that gives no passages, so that it is not read each time."""
        return self._place(document, len(self._encoded), problem=problem)

    def build(self) -> Index:
        """Return the finished index."""
        words = np.concatenate([np.zeros(0, np.int32), *self._words])
        word_starts = _starts([len(each) for each in self._words])
        return Index(
            documents=tuple(self._documents),
            passages=memoryview(b"".join(self._encoded)),
            offsets=_starts([len(each) for each in self._encoded]),
            words=words,
            word_starts=word_starts,
            vocabulary=self._vocabulary,
            matrix=Matrix.of(words, np.diff(word_starts), len(self._vocabulary)),
        )

    def _place(
        self, document: Document, start: int, *, title: str | None = None, problem: str = ""
    ) -> str:
        placed = replace(
            document,
            title=document.title if title is None else title,
            problem=problem or document.problem,
            start=start,
            stop=len(self._encoded),
        )
        self._documents.append(placed)
        return placed.problem


def _starts(lengths: Sequence[int]) -> Offsets:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
