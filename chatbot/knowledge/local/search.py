"""Finds the passages that are about a question: by BM25, then by how they match it."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chatbot.domain import Findings, Passage
from chatbot.knowledge.local.index import Index
from chatbot.knowledge.local.matrix import Scores
from chatbot.knowledge.local.refresh import Snapshot
from chatbot.relevance import Features, features
from chatbot.terms import MOST_CHARACTERS, Term, terms
from chatbot.text import is_character, language

CANDIDATES = 30  # how many of the best by BM25 are looked at
THRESHOLD = 0.13  # a passage of less relevance is not about the question
NEAREST = 3  # documents that are named where nothing was found

_WEAK = 0.05  # the evidence from which a passage may be about the question in other words
_PART = 0.5  # how much a part of a word counts for BM25
_RANK = 5.0  # what being first by BM25 adds to a passage's order
_NEAR = 0.2  # the evidence from which a document is near
_CHARACTERS = 8.0  # the same by the characters of a Chinese question
_LANGUAGE = 2.0  # what being in the question's language adds


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that shares words with the question. `order` is higher for better ones."""

    number: int
    order: float
    features: Features


def by_words(
    snapshot: Snapshot,
    query: str,
    assistants: Collection[str],
    limit: int,
    *,
    generous: bool = False,
) -> Findings:
    """Return at most `limit` passages of the assistants with these ids, the best first.

    Where there is none, the documents are named that share the most telling words. If
    `generous`, passages of less relevance come with those that are about the question, or
    as uncertain ones.
    """
    every = sorted(
        candidates(snapshot, query, assistants), key=lambda each: (-each.order, each.number)
    )
    found = [each for each in every if each.features.relevance >= THRESHOLD]
    weak = [each for each in every if each.features.evidence >= _WEAK] if generous else []
    near = [each.number for each in every if each.features.evidence >= _NEAR]

    def passages(chosen: Sequence[Candidate]) -> tuple[Passage, ...]:
        return tuple(
            snapshot.passage(each.number, each.features.relevance) for each in chosen[:limit]
        )

    if found:
        return Findings(passages=passages(weak or found))
    return Findings(uncertain=passages(weak), nearest=titles(snapshot, near))


def titles(snapshot: Snapshot, passages: Iterable[int]) -> tuple[str, ...]:
    """Return the titles of the first documents that these passages stand in."""
    found = (snapshot.document(number) for number in passages)
    return tuple(dict.fromkeys(each.title or each.stem for each in found))[:NEAREST]


def by_meaning(
    snapshot: Snapshot,
    similarities: Scores,
    assistants: Collection[str],
    limit: int,
    threshold: float,
) -> Findings:
    """Return at most `limit` passages of the assistants that are at least so similar.

    Where there is none, the documents are named that come closest.
    """
    scores = np.where(snapshot.belongs_to(assistants), similarities, -1.0)
    count = min(limit, len(scores))
    best = np.argpartition(-scores, count - 1)[:count] if count else ()
    order = sorted((-float(scores[each]), int(each)) for each in best)
    passages = tuple(
        snapshot.passage(number, min(1.0, -score))
        for score, number in order
        if -score >= threshold
    )
    near = [number for score, number in order if score < 0]
    return Findings(passages=passages, nearest=() if passages else titles(snapshot, near))


def candidates(
    snapshot: Snapshot, query: str, assistants: Collection[str]
) -> Iterator[Candidate]:
    """Give the passages that BM25 ranks highest, compared with the question."""
    index = snapshot.index
    question = terms(query)
    chinese = language(query) == "zh"
    weighed = _weighed(question)
    numbers = index.vocabulary.find(weighed)
    ranks = index.rank({number: weighed[word] for word, number in numbers.items()})
    ranks = _RANK * _scaled(ranks, snapshot.belongs_to(assistants))
    if chinese:
        characters = index.rank(_counted(query, index))
        ranks += _CHARACTERS * _scaled(characters, snapshot.belongs_to(assistants))
    count = min(CANDIDATES, index.size)
    best = np.argpartition(-ranks, count - 1)[:count] if count else ()
    wanted = {number: word for word, number in numbers.items()}
    for number in (int(each) for each in best if ranks[each] > 0):
        match = features(question, index.analysis(number, wanted))
        order = match.logit + float(ranks[number])
        if index.chinese[number] == chinese:
            order += _LANGUAGE
        yield Candidate(number, order, match)


def _scaled(ranks: Scores, allowed: NDArray[np.bool_]) -> Scores:
    """Return the ranks of what is allowed as shares of the highest."""
    ranks = np.where(allowed, ranks, np.float32(0))
    highest = float(ranks.max(initial=0))
    return ranks / np.float32(highest) if highest else ranks


def _counted(query: str, index: Index) -> dict[int, float]:
    """Return how often each character of a Chinese question stands in it, by its number.

    Other words for the same thing often share characters.
    """
    counted = Counter(filter(is_character, query[:MOST_CHARACTERS]))
    found = index.vocabulary.find(counted)
    return {number: float(counted[character]) for character, number in found.items()}


def _weighed(question: Sequence[Term]) -> dict[str, float]:
    """Return the words to rank by, parts of words with less weight than whole ones."""
    weights: dict[str, float] = {}
    for term in question:
        for word, weight in ((term.text, term.weight), *term.parts):
            share = 1.0 if word == term.text else _PART
            value = share * math.sqrt(min(term.weight, weight))
            weights[word] = max(weights.get(word, 0.0), value)
    return weights
