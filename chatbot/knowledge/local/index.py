"""The ranked index over all passages, in memory or mapped from the files it is saved in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

import bm25s
import numpy as np
from numpy.typing import NDArray

from chatbot.knowledge.local.cutting import Piece, cut
from chatbot.knowledge.local.folder import File
from chatbot.text import tokens

VERSION = 1  # of what is saved; raise it when cutting or tokens change

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]


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
    """Documents, passages and the BM25 matrix over them.

    `passages` holds the pieces as JSON, one after the other at `offsets`; `token_ids` the words
    of each passage at `token_starts`, from which the next index is made without reading again.
    """

    documents: tuple[Document, ...]
    passages: memoryview
    offsets: Offsets
    token_ids: Ids
    token_starts: Offsets
    ranking: bm25s.BM25 | None

    @property
    def size(self) -> int:
        """How many passages there are."""
        return len(self.offsets) - 1

    @property
    def vocabulary(self) -> Mapping[str, int]:
        """The number of each word."""
        return self.ranking.vocab_dict if self.ranking else {}

    def piece(self, number: int) -> Piece:
        """Return one passage."""
        start, stop = self.offsets[number], self.offsets[number + 1]
        location, text = json.loads(bytes(self.passages[start:stop]))
        return Piece(location, text)

    def frequency(self, token: str) -> int:
        """Return how many passages hold the token."""
        known = self.vocabulary.get(token)
        if known is None or self.ranking is None:
            return 0
        starts = self.ranking.scores["indptr"]
        return int(starts[known + 1] - starts[known])

    def rank(self, query: Mapping[str, float]) -> NDArray[np.float32]:
        """Return the BM25 score of every passage for the weighted tokens of a query."""
        total = np.zeros(self.size, dtype=np.float32)
        if self.ranking is None:
            return total
        matrix = self.ranking.scores
        for token, weight in query.items():
            known = self.vocabulary.get(token)
            if known is not None:
                span = slice(matrix["indptr"][known], matrix["indptr"][known + 1])
                total[matrix["indices"][span]] += weight * matrix["data"][span]
        return total

    def fingerprint(self) -> str:
        """Return a name for exactly these contents."""
        digest = sha256(f"{VERSION} {bm25s.__version__}".encode())
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
        self._vocabulary.pop("", None)
        self._known = (
            {(each.digest, each.name): each for each in earlier.documents} if earlier else {}
        )
        self._documents: list[Document] = []
        self._encoded: list[bytes] = []
        self._ids: list[Ids] = []

    def keep(self, document: Document) -> None:
        """Take over a document and its passages."""
        assert self._earlier is not None  # noqa: S101 - there is nothing to keep without one
        start = len(self._encoded)
        for number in range(document.start, document.stop):
            begin, end = self._earlier.offsets[number], self._earlier.offsets[number + 1]
            self._encoded.append(bytes(self._earlier.passages[begin:end]))
            begin, end = self._earlier.token_starts[number : number + 2]
            self._ids.append(self._earlier.token_ids[begin:end])
        self._place(document, start)

    def known(self, document: Document) -> Document | None:
        """Return the document as the earlier index has it, if the content is the same."""
        return self._known.get((document.digest, document.name))

    def add(self, document: Document, text: str) -> None:
        """Cut and add a new or changed document."""
        title, pieces = cut(text, markdown=File(document.name, 0, 0).markdown)
        start = len(self._encoded)
        stem = document.name.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        for piece in pieces:
            self._encoded.append(json.dumps([piece.location, piece.text]).encode())
            found = tokens(f"{stem}\n{piece.location}\n{piece.text}")
            self._ids.append(
                np.fromiter(
                    (
                        self._vocabulary.setdefault(token, len(self._vocabulary))
                        for token in found
                    ),
                    dtype=np.int32,
                )
            )
        self._place(document, start, title=title)

    def skip(self, document: Document, problem: str) -> None:
        """Remember a document that gives no passages, so that it is not read each time."""
        self._place(document, len(self._encoded), problem=problem)

    def build(self) -> Index:
        """Return the finished index."""
        ranking = None
        if self._encoded:
            ranking = bm25s.BM25(k1=1.2, b=0.6)
            ids = [each.tolist() for each in self._ids]
            ranking.index((ids, self._vocabulary), show_progress=False)
        return Index(
            documents=tuple(self._documents),
            passages=memoryview(b"".join(self._encoded)),
            offsets=_starts([len(each) for each in self._encoded]),
            token_ids=np.concatenate(self._ids) if self._ids else np.zeros(0, np.int32),
            token_starts=_starts([len(each) for each in self._ids]),
            ranking=ranking,
        )

    def _place(
        self, document: Document, start: int, *, title: str | None = None, problem: str = ""
    ) -> None:
        self._documents.append(
            replace(
                document,
                title=document.title if title is None else title,
                problem=problem or document.problem,
                start=start,
                stop=len(self._encoded),
            )
        )


def _starts(lengths: Sequence[int]) -> Offsets:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
