"""BM25 as a sparse matrix: what each word contributes to the score of each passage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]
Scores = NDArray[np.float32]

_SATURATION = 1.2  # BM25's k1: how soon further occurrences of a word stop to count
_LENGTH = 0.6  # BM25's b: how much long passages are held back


@dataclass(frozen=True, slots=True)
class Matrix:
    """The columns of the matrix, one per word, without their zeros.

    The column of word `w` is `scores[starts[w]:starts[w + 1]]`, for the passages at the same
    places of `passages`. The arrays may be mapped from files.
    """

    starts: Offsets
    passages: Ids
    scores: Scores

    @classmethod
    def of(cls, words: Ids, lengths: Offsets, vocabulary: int) -> Self:
        """Compute the matrix from the words of all passages, one passage after the other."""
        count = len(lengths)
        owners = np.repeat(np.arange(count, dtype=np.int64), lengths)
        pairs = words.astype(np.int64) * max(1, count) + owners
        pairs.sort()
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        frequency = np.diff(first, append=len(pairs))
        word, passage = np.divmod(pairs[first], max(1, count))
        holders = np.bincount(word, minlength=vocabulary)
        rarity = np.log1p((count - holders + 0.5) / (holders + 0.5))
        length = lengths / max(1.0, float(lengths.mean()) if count else 1.0)
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * length)
        scores = rarity[word] * frequency / (frequency + damping[passage])
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(holders)])
        return cls(starts, passage.astype(np.int32), scores.astype(np.float32))

    def rank(self, query: Mapping[int, float], count: int) -> Scores:
        """Return the score of each of `count` passages for a query of weighed words."""
        total = np.zeros(count, dtype=np.float32)
        for word, weight in query.items():
            column = slice(self.starts[word], self.starts[word + 1])
            total[self.passages[column]] += weight * self.scores[column]
        return total
