"""What a question is about: its words, each weighed by how much it says."""

import json
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from chatbot.courtesy import without_courtesy
from chatbot.function_words import FUNCTION_WORDS
from chatbot.text import Word, is_character, segmenter, subwords, words

MOST_TERMS = 48
MOST_CHARACTERS = 4000
MOST_PARTS = 24

_CHINESE_WORDS = 60_101_967  # the words that the segmenter's dictionary was counted on
_RANKS = math.log(400), math.log(12_000)  # of English words that say nothing, and all
NUMBER = 0.3  # the weight of a number without letters
CODE = 1.8  # of a number with letters: nothing is more specific
FUNCTION = 0.05  # the most that a word weighs which only holds a sentence together
PAIR = "pair"  # the tag of two characters that may be a word
_GRAMMATICAL = frozenset("rupcyeokh")  # tags of words that only hold a sentence together
_IDIOMATIC = frozenset("il")  # phrases, rare as a whole, which say what their words say
_HALF_GRAMMATICAL = frozenset("dmqft")  # adverbs, numbers, measures, directions, times
PART = 0.7  # what a word counts for when all its parts occur, but not the word


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a question. `weight` says how much it tells, `parts` are the words inside it.

    `text` is the form that is compared, `surface` the one the question has.
    """

    text: str
    surface: str
    weight: float
    parts: tuple[tuple[str, float], ...] = ()

    def presence(self, tokens: Collection[str]) -> float:
        """Return how far the word occurs among the tokens, between 0 and 1."""
        if self.text in tokens:
            return 1.0
        found = sum(weight for part, weight in self.parts if part in tokens)
        if not found:
            return 0.0
        share = found / sum(weight for _, weight in self.parts)
        return PART * share * math.sqrt(share)


def terms(text: str) -> list[Term]:
    """Return the different words of the text, at most the `MOST_TERMS` weightiest, in order."""
    if len(text) > MOST_CHARACTERS:
        text = f"{text[: MOST_CHARACTERS // 2]}\n{text[-MOST_CHARACTERS // 2 :]}"
    distinct: dict[str, Term] = {}
    for word in _paired(words(without_courtesy(text))):
        if word.text not in distinct:
            value = weight(word.text, word.tag)
            distinct[word.text] = Term(word.text, word.surface, value, _parts(word.text))
    found = list(distinct.values())
    if len(found) > MOST_TERMS:
        least = sorted(term.weight for term in found)[-MOST_TERMS]
        found = [term for term in found if term.weight >= least][:MOST_TERMS]
    return found


def _paired(found: Iterable[Word]) -> Iterator[Word]:
    """Join two characters that may form a word which the dictionary does not know."""
    before: Word | None = None
    for word in found:
        joinable = is_character(word.text) and not _is_grammatical(word)
        if before and joinable:
            yield Word(before.text + word.text, PAIR, before.surface + word.surface)
            before = None
            continue
        if before:
            yield before
        before = word if joinable else None
        if not joinable:
            yield word
    if before:
        yield before


def _is_grammatical(word: Word) -> bool:
    return word.tag[0] in _GRAMMATICAL or word.text in FUNCTION_WORDS


def coverage(question: Iterable[Term], tokens: Collection[str]) -> float:
    """Return the share of the question's weight that occurs among the tokens."""
    covered = total = 0.0
    for term in question:
        covered += term.weight * term.presence(tokens)
        total += term.weight
    return covered / total if total else 0.0


@lru_cache(maxsize=50_000)
def weight(word: str, tag: str) -> float:
    """Return how much a word tells about the subject, from how rare it is in the language."""
    value = _rarity(word, tag)
    return min(value, FUNCTION) if word in FUNCTION_WORDS else value


def _rarity(word: str, tag: str) -> float:
    if tag == "num":
        return NUMBER if word.isdigit() else CODE
    if tag == PAIR:
        return max(_part_weight(character) for character in word)
    if not tag:
        rank = _english().get(word)
        return _between(math.log(rank), *_RANKS) if rank else 1.0
    rarity = math.log(_CHINESE_WORDS / segmenter().suggest_freq(word)) / math.log(
        _CHINESE_WORDS
    )
    value = _between(rarity, 0.3, 0.65)
    if tag[0] in _IDIOMATIC:
        value = min(value, 1.3 * sum(_part_weight(each) for each in word) / len(word))
    if tag[0] in _GRAMMATICAL:
        return 0.15 * value
    return (0.5 if tag[0] in _HALF_GRAMMATICAL else 1.0) * value


def _parts(word: str) -> tuple[tuple[str, float], ...]:
    return tuple((part, _part_weight(part)) for part in subwords(word)[:MOST_PARTS])


@lru_cache(maxsize=50_000)
def _part_weight(part: str) -> float:
    return max((weight(word.text, word.tag) for word in words(part)), default=0.0)


def _between(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.03, (value - low) / (high - low)))


@cache
def _english() -> dict[str, int]:
    table: dict[str, int] = json.loads(
        files("chatbot").joinpath("terms.json").read_text("utf-8")
    )
    return table
