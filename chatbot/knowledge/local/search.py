"""Finds the passages that are about a question: by BM25, then by how they match it."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from chatbot.domain import Passage
from chatbot.knowledge.local.matrix import Scores
from chatbot.knowledge.local.refresh import Snapshot
from chatbot.relevance import Features, features
from chatbot.terms import Term, terms
from chatbot.text import language

CANDIDATES = 30  # how many of the best by BM25 are looked at
THRESHOLD = 0.14  # a passage of less relevance is not about the question

_PART = 0.5  # how much a part of a word counts for BM25
_RANK = 5.0  # what being first by BM25 adds to a passage's order
_LANGUAGE = 2.0  # what being in the question's language adds


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that shares words with the question. `order` is higher for better ones."""

    number: int
    order: float
    features: Features


def best_passages(
    snapshot: Snapshot, query: str, assistants: Collection[str], limit: int
) -> tuple[Passage, ...]:
    """Return at most `limit` passages of the assistants with these ids, the best first."""
    found = sorted(
        (
            each
            for each in candidates(snapshot, query, assistants)
            if each.features.relevance >= THRESHOLD
        ),
        key=lambda each: (-each.order, each.number),
    )
    return tuple(
        snapshot.passage(each.number, each.features.relevance) for each in found[:limit]
    )


def similar_passages(
    snapshot: Snapshot,
    similarities: Scores,
    assistants: Collection[str],
    limit: int,
    threshold: float,
) -> tuple[Passage, ...]:
    """Return at most `limit` passages of the assistants that are at least so similar."""
    scores = np.where(snapshot.belongs_to(assistants), similarities, -1.0)
    count = min(limit, len(scores))
    best = np.argpartition(-scores, count - 1)[:count] if count else ()
    found = sorted((-float(scores[each]), int(each)) for each in best)
    return tuple(
        snapshot.passage(number, min(1.0, -score))
        for score, number in found
        if -score >= threshold
    )


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
    ranks[~snapshot.belongs_to(assistants)] = 0
    count = min(CANDIDATES, index.size)
    best = np.argpartition(-ranks, count - 1)[:count] if count else ()
    highest = max((float(ranks[each]) for each in best), default=0.0)
    wanted = {number: word for word, number in numbers.items()}
    for number in (int(each) for each in best if ranks[each] > 0):
        match = features(question, index.analysis(number, wanted))
        order = match.logit + _RANK * float(ranks[number]) / highest
        if index.chinese[number] == chinese:
            order += _LANGUAGE
        yield Candidate(number, order, match)


def _weighed(question: Sequence[Term]) -> dict[str, float]:
    """Return the words to rank by, parts of words with less weight than whole ones."""
    weights: dict[str, float] = {}
    for term in question:
        for word, weight in ((term.text, term.weight), *term.parts):
            share = 1.0 if word == term.text else _PART
            value = share * math.sqrt(min(term.weight, weight))
            weights[word] = max(weights.get(word, 0.0), value)
    return weights
