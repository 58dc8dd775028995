"""Builds an index, taking over from an earlier one what did not change."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from chatbot.knowledge.local.cutting import Piece
from chatbot.knowledge.local.index import Document, Index
from chatbot.knowledge.local.matrix import Ids, Matrix, Offsets
from chatbot.knowledge.local.vocabulary import Vocabulary, hash_of
from chatbot.text import language, sentences, tokens


@dataclass(frozen=True, slots=True)
class _Entry:
    """A passage as it is indexed; see `Index`."""

    encoded: bytes
    words: Ids
    parts: Ids
    chinese: bool
    key: int


class Builder:
    """Makes an index of documents that are kept, added or skipped, in this order."""

    def __init__(self, earlier: Index | None = None) -> None:
        self._earlier = earlier
        self._numbers = earlier.vocabulary.as_dict() if earlier else {}
        self._met: dict[str, int] = {}
        self._known = (
            {(each.digest, each.name): each for each in earlier.documents} if earlier else {}
        )
        self._documents: list[Document] = []
        self._entries: list[_Entry] = []

    def keep(self, document: Document) -> str:
        """Take over a document and its passages, and return why it has none, or ""."""
        earlier = self._earlier
        assert earlier is not None  # noqa: S101 - there is nothing to keep without one
        start = len(self._entries)
        for number in range(document.start, document.stop):
            at = slice(number, number + 2)
            self._entries.append(
                _Entry(
                    encoded=bytes(earlier.passages[slice(*earlier.offsets[at])]),
                    words=earlier.words[slice(*earlier.word_starts[at])],
                    parts=earlier.parts[slice(*earlier.part_starts[at])],
                    chinese=bool(earlier.chinese[number]),
                    key=int(earlier.keys[number]),
                )
            )
        return self._place(document, start)

    def known(self, document: Document) -> Document | None:
        """Return the document as the earlier index has it, if the content is the same."""
        return self._known.get((document.digest, document.name))

    def add(self, document: Document, title: str, pieces: Sequence[Piece]) -> str:
        """Add a new or changed document and return why it has no passages, or ""."""
        start = len(self._entries)
        self._entries.extend(self._entry(document.stem, piece) for piece in pieces)
        problem = "" if pieces else "it holds no text below its headings"
        return self._place(document, start, title=title, problem=problem)

    def skip(self, document: Document, problem: str) -> str:
        """Remember a document that gives no passages, so that it is not read each time."""
        return self._place(document, len(self._entries), problem=problem)

    def build(self) -> Index:
        """Return the finished index."""
        entries = self._entries
        words = np.concatenate([np.zeros(0, np.int32), *(each.words for each in entries)])
        word_starts = _starts([len(each.words) for each in entries])
        return Index(
            documents=tuple(self._documents),
            passages=memoryview(b"".join(each.encoded for each in entries)),
            offsets=_starts([len(each.encoded) for each in entries]),
            words=words,
            word_starts=word_starts,
            parts=np.concatenate([np.zeros(0, np.int32), *(each.parts for each in entries)]),
            part_starts=_starts([len(each.parts) for each in entries]),
            chinese=np.array([each.chinese for each in entries], dtype=np.bool_),
            keys=np.array([each.key for each in entries], dtype=np.uint64),
            vocabulary=Vocabulary.of(self._numbers),
            matrix=Matrix.of(words, np.diff(word_starts), len(self._numbers)),
        )

    def _entry(self, stem: str, piece: Piece) -> _Entry:
        parts = [
            [self._number(token) for token in tokens(part)]
            for part in (f"{stem}\n{piece.location}", *sentences(piece.text))
        ]
        return _Entry(
            encoded=json.dumps([piece.location, piece.text]).encode(),
            words=np.array([word for part in parts for word in part], dtype=np.int32),
            parts=np.array([len(part) for part in parts], dtype=np.int32),
            chinese=language(piece.text) == "zh",
            key=hash_of(f"{stem}\n{piece.location}\n{piece.text}"),
        )

    def _number(self, token: str) -> int:
        number = self._met.get(token)
        if number is None:
            number = self._numbers.setdefault(hash_of(token), len(self._numbers))
            self._met[token] = number
        return number

    def _place(
        self, document: Document, start: int, *, title: str | None = None, problem: str = ""
    ) -> str:
        placed = replace(
            document,
            title=document.title if title is None else title,
            problem=problem or document.problem,
            start=start,
            stop=len(self._entries),
        )
        self._documents.append(placed)
        return placed.problem


def _starts(lengths: Sequence[int]) -> Offsets:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
