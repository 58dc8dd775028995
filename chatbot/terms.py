"""What a question is about: its words, each weighed by how much it says."""

import json
import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import rjieba

from chatbot.text import subwords, words

MOST_TERMS = 48
MOST_CHARACTERS = 4000

_CHINESE_WORDS = 60_101_967  # the words that the segmenter's dictionary was counted on
_GRAMMATICAL = frozenset("rupcyeoxkhz")  # tags of words that only hold a sentence together
_HALF_GRAMMATICAL = frozenset("dmqft")  # adverbs, numbers, measures, directions, times
_PART = 0.6  # what a word counts for when only its parts occur


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question. `weight` is between 0 and 1, `parts` are shorter words in it."""

    text: str
    weight: float
    parts: tuple[str, ...] = ()

    def presence(self, tokens: Collection[str]) -> float:
        """Return how far the word occurs among the tokens, between 0 and 1."""
        if self.text in tokens:
            return 1.0
        if not self.parts:
            return 0.0
        return _PART * sum(part in tokens for part in self.parts) / len(self.parts)


def terms(text: str) -> list[Term]:
    """Return the different words of the text, at most the `MOST_TERMS` weightiest, in order."""
    tags: dict[str, str] = {}
    for word, tag in words(text[:MOST_CHARACTERS]):
        tags.setdefault(word, tag)
    found = [Term(word, weight(word, tag), _parts(word)) for word, tag in tags.items()]
    if len(found) > MOST_TERMS:
        kept = set(sorted(found, key=lambda term: -term.weight)[:MOST_TERMS])
        found = [term for term in found if term in kept]
    return found


def coverage(question: Iterable[Term], tokens: Collection[str]) -> float:
    """Return the share of the question's weight that occurs among the tokens."""
    covered = total = 0.0
    for term in question:
        covered += term.weight * term.presence(tokens)
        total += term.weight
    return covered / total if total else 0.0


def weight(word: str, tag: str) -> float:
    """Return how much a word tells about the subject, from how rare it is in the language."""
    if tag == "num":
        return 1.0 if len(word) > 1 else 0.5
    if not tag:
        rarity = -math.log10(max(_english().get(word, 0), 2) / 1e6)
        return _between(rarity, 2.2, 4.7)
    rarity = math.log(_CHINESE_WORDS / rjieba.suggest_freq(word)) / math.log(_CHINESE_WORDS)
    value = _between(rarity, 0.3, 0.65)
    if tag[0] in _GRAMMATICAL:
        return 0.15 * value
    return (0.5 if tag[0] in _HALF_GRAMMATICAL else 1.0) * value


def _parts(word: str) -> tuple[str, ...]:
    parts = subwords(word)
    longer = tuple(part for part in parts if len(part) > 1)
    return longer or (tuple(parts) if len(word) > 2 else ())


def _between(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.03, (value - low) / (high - low)))


@cache
def _english() -> dict[str, int]:
    table: dict[str, int] = json.loads(
        files("chatbot").joinpath("terms.json").read_text("utf-8")
    )
    return table
