"""How sure it is that a passage is about a question: a score that means the same everywhere."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chatbot.knowledge.local.cutting import Piece
from chatbot.terms import Term, coverage
from chatbot.text import sentences, tokens

THRESHOLD = 0.3  # a passage below it is not about the question


@dataclass(frozen=True, slots=True)
class Features:
    """What the score is made of, each between 0 and 1.

    `passage`, `sentence` and `heading` are the shares of the question's weight that occur in
    the passage, in two sentences of it, and in its heading path; `evidence` grows with the
    weight that occurs, `unknown` is the share of weight that occurs nowhere in the knowledge.
    """

    passage: float
    sentence: float
    heading: float
    evidence: float
    unknown: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """A passage's words: of its heading path, of each sentence, and all together."""

    heading: frozenset[str]
    sentences: tuple[frozenset[str], ...]
    everything: frozenset[str]


def analysis(piece: Piece, document: str) -> Analysis:
    """Take a passage apart."""
    heading = frozenset(tokens(f"{document}\n{piece.location}"))
    each = tuple(frozenset(tokens(sentence)) for sentence in sentences(piece.text))
    return Analysis(heading, each, heading.union(*each))


def features(
    question: Sequence[Term], passage: Analysis, frequencies: Sequence[int]
) -> Features:
    """Compare a question with a passage."""
    total = sum(term.weight for term in question)
    unknown = sum(
        term.weight
        for term, frequency in zip(question, frequencies, strict=True)
        if not frequency and not term.presence(passage.everything)
    )
    covered = coverage(question, passage.everything)
    pairs = zip(passage.sentences, (*passage.sentences[1:], frozenset()), strict=True)
    return Features(
        passage=covered,
        sentence=max((coverage(question, one | two) for one, two in pairs), default=0.0),
        heading=coverage(question, passage.heading),
        evidence=1 - math.exp(-covered * total),
        unknown=unknown / total if total else 0.0,
    )


def score(found: Features) -> float:
    """Return how likely it is that the passage is about the question."""
    value = (
        -5.5
        + 5.0 * found.passage
        + 2.0 * found.sentence
        + 1.5 * found.heading
        + 2.5 * found.evidence
        - 1.5 * found.unknown
    )
    return 1 / (1 + math.exp(-value))
