"""How sure it is that a passage is about a question: a measure that needs no other passage."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from chatbot.terms import Term, coverage
from chatbot.text import sentences, tokens

LONGEST = 4000  # characters of a passage that are looked at

# Fitted by `benchmarks/retrieval_fit.py`, which also tells how well they hold elsewhere.
_WEIGHTS = (3.8, 3.4, 3.7, 2.1)
_BIAS = -5.1


@dataclass(frozen=True, slots=True)
class Analysis:
    """A passage's words: of its heading path, of each sentence, and all together."""

    heading: frozenset[str]
    sentences: tuple[frozenset[str], ...]
    everything: frozenset[str]


@lru_cache(maxsize=2000)
def analysis(text: str, heading: str) -> Analysis:
    """Take a passage apart. The last ones are remembered: searches meet them again."""
    above = frozenset(tokens(heading[:LONGEST]))
    each = tuple(frozenset(tokens(sentence)) for sentence in sentences(text[:LONGEST]))
    return Analysis(above, each, above.union(*each))


@dataclass(frozen=True, slots=True)
class Features:
    """What relevance is made of, each between 0 and 1.

    `passage`, `sentence` and `heading` are the shares of the question's weight that occur in
    the passage, in two neighbouring sentences and in the heading path. `evidence` grows with
    the weight that occurs: to match one common word completely says little.
    """

    passage: float
    sentence: float
    heading: float
    evidence: float

    def values(self) -> tuple[float, ...]:
        """Return what is weighed: evidence, and how it is spread, which counts as far."""
        shares = (1.0, self.passage, self.sentence, self.heading)
        return tuple(self.evidence * share for share in shares)

    @property
    def logit(self) -> float:
        """The relevance before it is pressed between 0 and 1: what rankings add to."""
        return math.fsum((_BIAS, *map(mul, _WEIGHTS, self.values())))

    @property
    def relevance(self) -> float:
        """The probability that a passage with these features is about the question."""
        return 1 / (1 + math.exp(-self.logit))


def features(question: Sequence[Term], passage: Analysis) -> Features:
    """Compare a question with a passage."""
    covered = coverage(question, passage.everything)
    weight = sum(term.weight for term in question)
    pairs = zip(passage.sentences, (*passage.sentences[1:], frozenset()), strict=False)
    return Features(
        passage=covered,
        sentence=max((coverage(question, one | two) for one, two in pairs), default=0.0),
        heading=coverage(question, passage.heading),
        evidence=1 - math.exp(-covered * weight),
    )
