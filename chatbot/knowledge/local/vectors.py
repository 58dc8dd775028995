"""Keeps the embeddings of passages on disk, each once, by the hash of its passage."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import structlog
from numpy.typing import NDArray

from chatbot.knowledge.local.embedding import Vectors
from chatbot.knowledge.local.matrix import Scores
from chatbot.knowledge.local.vocabulary import Hashes

_log = structlog.get_logger(__name__)

_MOST_SEGMENTS = 8
_UNUSED = 0.5  # the share of vectors without a passage from which they are removed


@dataclass(frozen=True, slots=True, eq=False)
class _Segment:
    """Vectors that were saved together, mapped from their file."""

    name: str
    keys: Hashes
    vectors: Vectors


class _Placed:
    """Where the vectors of some keys are: `rows` counts over all segments, -1 is nowhere."""

    def __init__(self, segments: tuple[_Segment, ...], keys: Hashes) -> None:
        self.segments = segments
        self.keys = keys
        every = np.concatenate([np.zeros(0, np.uint64), *(each.keys for each in segments)])
        order = np.argsort(every, kind="stable")
        places = np.searchsorted(every[order], keys)
        found = np.append(order, -1)[places]
        same = np.append(every, np.uint64(0))[found] == keys
        self.rows: NDArray[np.int64] = np.where(same & (found >= 0), found, -1)


class VectorStore:
    """The vectors of one model. Files are only added, so processes do not disturb each other.

    Where the disk cannot be written, or there is no place, the vectors stay in memory.
    """

    def __init__(self, place: Path | None) -> None:
        self._writes = place is not None
        self._place = Path(os.devnull) if place is None else place  # nothing is below it
        self._segments: tuple[_Segment, ...] = ()
        self._placed = _Placed((), np.zeros(0, np.uint64))

    def load(self) -> None:
        """Open what is saved."""
        found = []
        for path in sorted(self._place.glob("*.keys.npy")):
            name = path.name.removesuffix(".keys.npy")
            with suppress(OSError, ValueError, EOFError):
                keys = np.load(path)
                vectors = np.asarray(np.load(self._vectors(name), mmap_mode="r"))
                if keys.dtype == np.uint64 and vectors.shape[:1] == keys.shape:
                    found.append(_Segment(name, keys, vectors))
        self._segments = tuple(found)

    def missing(self, keys: Hashes) -> NDArray[np.int64]:
        """Return the places of the keys that have no vector, each key once."""
        _, first = np.unique(keys, return_index=True)
        rows = self._place_of(keys).rows
        places: NDArray[np.int64] = np.sort(first[rows[first] < 0])
        return places

    def add(self, keys: Hashes, vectors: Vectors) -> None:
        """Add and save the vectors of passages with these keys."""
        name = f"{time.time_ns()}-{os.getpid()}"
        if self._writes:
            vectors = self._saved(name, keys, vectors)
        self._segments = (*self._segments, _Segment(name, keys, vectors))

    def _saved(self, name: str, keys: Hashes, vectors: Vectors) -> Vectors:
        """Return the vectors as they lie in their file, or as they are if there can be none."""
        try:
            self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
            np.save(self._vectors(name), vectors)
            np.save(self._place / f"{name}.keys.npy", keys)  # last: it makes the two count
            return np.asarray(np.load(self._vectors(name), mmap_mode="r"))
        except OSError as error:
            _log.warning("embeddings kept in memory only", error=str(error))
            return vectors

    def similarities(self, keys: Hashes, query: Vectors) -> Scores | None:
        """Return the cosine of each passage with the query, 0 for those without a vector.

        Vectors of another size than the query's are of no use any more: they are removed, and
        nothing is returned.
        """
        placed = self._place_of(keys)
        other = [each for each in placed.segments if each.vectors.shape[1] != len(query)]
        if other:
            self._segments = tuple(each for each in self._segments if each not in other)
            self._delete(other)
            return None
        scores = [each.vectors @ query for each in placed.segments]
        found: Scores = np.concatenate([*scores, np.zeros(1, np.float32)])[placed.rows]
        return found

    def tidy(self, keys: Hashes) -> None:
        """Join many files into one, and remove the vectors of passages that are gone."""
        placed = self._place_of(keys)
        used = np.unique(placed.rows[placed.rows >= 0])
        count = sum(len(each.keys) for each in placed.segments)
        if len(placed.segments) <= _MOST_SEGMENTS and len(used) >= _UNUSED * count:
            return
        every_key, vectors, start = [], [], 0
        for segment in placed.segments:
            stop = start + len(segment.keys)
            rows = used[(used >= start) & (used < stop)] - start
            every_key.append(segment.keys[rows])
            vectors.append(segment.vectors[rows])
            start = stop
        self._segments = ()
        if len(used):
            self.add(np.concatenate(every_key), np.concatenate(vectors))
        self._delete(placed.segments)

    def _place_of(self, keys: Hashes) -> _Placed:
        segments, placed = self._segments, self._placed
        if placed.segments is not segments or placed.keys is not keys:
            self._placed = placed = _Placed(segments, keys)
        return placed

    def _delete(self, segments: Sequence[_Segment]) -> None:
        for segment in segments:
            for path in (self._place / f"{segment.name}.keys.npy", self._vectors(segment.name)):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def _vectors(self, name: str) -> Path:
        return self._place / f"{name}.vectors.npy"
