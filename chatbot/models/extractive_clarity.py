"""How sure it is that passages answer a question, and are not just about what it is about."""

import math
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any

from chatbot.models.extractive_wording import names_subject
from chatbot.relevance import Analysis, Features, analysis, features
from chatbot.terms import coverage, terms

LONGEST_PASSAGE = 4000
MOST_PASSAGES = 30

ANSWERED = 0.3  # the probability from which passages are said to answer
NEAR = 0.15  # and from which they are worth reading, where they hardly do
_OWN = 0.3  # the share of a follow-up's own words that a passage about it has
_OTHERS = 2  # passages that may be as relevant as the best one: its translation, its neighbour

# Fitted by `benchmarks/clarity_fit.py`, which also measures how well they hold elsewhere.
_WEIGHTS = (1.9, 1.9, 1.5, 2.2, 0.5)
_BIAS = -5.4


def clarity(question: str, asked: str, passages: Sequence[Mapping[str, Any]]) -> float:
    """Return the probability that the passages answer the question.

    A question that was made whole has the words of an earlier subject, which say nothing about
    what was `asked`: where that has words of its own, some must occur as well. A passage that
    was found by its meaning has a higher score than its words give it.
    """
    taken = [passage_analysis(passage) for passage in passages[:MOST_PASSAGES]]
    values = signals(question, taken)
    if values is None:
        return 0.0
    sure = 1 / (1 + math.exp(-math.fsum((_BIAS, *map(mul, _WEIGHTS, values)))))
    if question != asked and names_subject(asked):
        own = terms(asked)
        if max(coverage(own, words.everything) for words in taken) < _OWN:
            sure = min(sure, NEAR)
    whole = terms(question)
    for passage, words in zip(passages, taken, strict=False):
        score = 2 * float(passage.get("score") or 0) - 1  # of a similarity, half says nothing
        if score > features(whole, words).relevance:
            sure = max(sure, score)
    return sure


def signals(question: str, passages: Sequence[Analysis]) -> tuple[float, ...] | None:
    """Return what it is computed from, or nothing where there is no passage.

    These are the features of the passage that matches best, and how far it stands out: where
    several match alike, they share the subject with the question, not its point.
    """
    asked = terms(question)
    found = sorted((features(asked, each) for each in passages), key=_match, reverse=True)
    if not found:
        return None
    best = found[0]
    lead = _match(best) - (_match(found[_OTHERS]) if len(found) > _OTHERS else 0.0)
    return best.passage, best.sentence, best.heading, best.evidence, lead


def _match(found: Features) -> float:
    values = (found.passage, found.sentence, found.heading, found.evidence)
    return math.fsum(map(mul, _WEIGHTS, values))


def passage_analysis(passage: Mapping[str, Any]) -> Analysis:
    """Return the words of a passage and of where it stands."""
    text = str(passage.get("text") or "")[:LONGEST_PASSAGE]
    return analysis(text, str(passage.get("location") or ""))
