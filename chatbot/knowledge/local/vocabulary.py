"""The numbers of all words, looked up in arrays that may be mapped from files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray

from chatbot.knowledge.local.matrix import Ids

Hashes = NDArray[np.uint64]


def hash_of(text: str) -> int:
    """Return a number for a text; two texts with the same one are not to be expected."""
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest())


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The hashes of the words, sorted, and the number of each: opened at once, however many."""

    hashes: Hashes
    numbers: Ids

    @classmethod
    def of(cls, numbers: Mapping[int, int]) -> Self:
        """Return the vocabulary of words with these hashes and numbers."""
        hashes = np.fromiter(numbers.keys(), dtype=np.uint64, count=len(numbers))
        values = np.fromiter(numbers.values(), dtype=np.int32, count=len(numbers))
        order = np.argsort(hashes)
        return cls(hashes[order], values[order])

    @property
    def size(self) -> int:
        """How many words there are."""
        return len(self.hashes)

    def find(self, words: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those words that there are."""
        asked = list(words)
        wanted = np.array([hash_of(word) for word in asked], dtype=np.uint64)
        places = np.searchsorted(self.hashes, wanted)
        return {
            word: int(self.numbers[place])
            for word, place, value in zip(asked, places, wanted, strict=True)
            if place < self.size and self.hashes[place] == value
        }

    def as_dict(self) -> dict[int, int]:
        """Return the number of each hash."""
        return dict(zip(self.hashes.tolist(), self.numbers.tolist(), strict=True))
