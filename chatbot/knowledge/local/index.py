"""The ranked index over all passages, in memory or mapped from the files it is saved in."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chatbot.knowledge.local.cutting import Piece
from chatbot.knowledge.local.folder import File
from chatbot.knowledge.local.matrix import Ids, Matrix, Offsets, Scores
from chatbot.knowledge.local.vocabulary import Hashes, Vocabulary
from chatbot.relevance import Analysis

VERSION = 5  # of what is saved; raise it when cutting or tokens change


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
    def stem(self) -> str:
        """The name of the file alone, without what tells its kind."""
        return self.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]

    @property
    def assistant(self) -> str:
        """The id of the assistant it belongs to."""
        return File(self.name, self.size, self.modified).assistant


@dataclass(frozen=True, slots=True)
class Index:
    """Documents, passages and the matrix that ranks them.

    `passages` holds the pieces as JSON, one after the other at `offsets`; `words` the numbers
    of the words of each passage at `word_starts`. Of these, `parts` says how many belong to its
    heading and to each of its sentences, at `part_starts`. `chinese` tells which passages are
    in Chinese, `keys` holds a hash of each, by which its embedding is found.
    """

    documents: tuple[Document, ...]
    passages: memoryview
    offsets: Offsets
    words: Ids
    word_starts: Offsets
    parts: Ids
    part_starts: Offsets
    chinese: NDArray[np.bool_]
    keys: Hashes
    vocabulary: Vocabulary
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

    def rank(self, query: Mapping[int, float]) -> Scores:
        """Return the BM25 score of every passage for the weighed words of a query."""
        return self.matrix.rank(query, self.size)

    def analysis(self, number: int, wanted: Mapping[int, str]) -> Analysis:
        """Return which of the wanted words, by their numbers, stand where in a passage."""
        words = self.words[self.word_starts[number] : self.word_starts[number + 1]].tolist()
        parts = self.parts[self.part_starts[number] : self.part_starts[number + 1]].tolist()
        found, start = [], 0
        for length in parts:
            part = words[start : start + length]
            found.append(frozenset(wanted[each] for each in part if each in wanted))
            start += length
        heading, *sentences = found
        return Analysis(heading, tuple(sentences), heading.union(*sentences))

    def fingerprint(self) -> str:
        """Return a name for exactly these contents."""
        digest = sha256(str(VERSION).encode())
        for document in self.documents:
            digest.update(json.dumps([document.name, document.digest]).encode())
        return digest.hexdigest()[:32]

    def manifest(self) -> dict[str, Any]:
        """Return the list of documents as plain JSON."""
        return {"version": VERSION, "documents": [asdict(each) for each in self.documents]}
