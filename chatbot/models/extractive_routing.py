"""Reads a conversation by what the knowledge base finds: the route and the whole question."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import mul

from chatbot.courtesy import without_courtesy
from chatbot.domain import Assistant, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.models.extractive_wording import addresses, asks, refers
from chatbot.ports import KnowledgeBase
from chatbot.relevance import Analysis, analysis, features
from chatbot.terms import Term, coverage, terms
from chatbot.text import language

TURNS = 4  # how far back a follow-up may go
LOOKED_AT = 6  # passages of each search

KNOWLEDGE = 0.5  # the probability from which a question is looked up
UNSURE = 0.4  # a relevance below it does not tell that the question stands alone
NEAR = 0.4  # the share of its words, as found alone, that must stand with the earlier subject
WHOLE = 0.95  # the share from which a passage has all words of a message, as of a bare keyword
# Fitted by `benchmarks/routing.py --fit`, which also measures how well they hold elsewhere.
_FIRST = (6.9, 2.1, -2.4, -3.9)
_LATER = (6.5, 1.9, 1.8, 1.7, 2.9, 1.4, -3.7, -4.2)

_REMEMBERED = 1024
_SUBJECT_WEIGHT = 0.5  # of a word that can name a subject
_RARE_WEIGHT = 0.7
_SUBJECT_WORDS = 6
_ABOUT = 0.5  # the share of a subject that a passage about it has


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to look something up, the question as it stands alone, and where to look."""

    knowledge: bool
    question: str
    assistants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signals:
    """What the searches tell about a question, alone and after what was asked before.

    `alone` is the best relevance for the question by itself. `covered_alone` and
    `covered_joined` are the best shares of the question in one passage, the latter in passages
    about the earlier subject; `evidence` grows with the weight of the words that it covers.
    `gain` is what the question adds to the relevance of the subject. `asks`, `refers` and
    `addresses` tell of its wording. Without a context there is no `joined` and no `gain`.
    """

    alone: float
    covered_alone: float
    covered_joined: float
    evidence: float
    gain: float
    asks: bool
    refers: bool
    addresses: bool

    def values(self, *, first: bool) -> tuple[float, ...]:
        """Return what `knowledge` is computed from, for a first question or a later one."""
        if first:
            return self.alone, self.asks, self.addresses, 1.0
        shares = (self.alone, self.covered_joined, self.evidence, self.gain)
        return (*shares, self.asks, self.refers, self.addresses, 1.0)

    def knowledge(self, *, first: bool) -> float:
        """Return the probability that the question needs the knowledge base."""
        weights = _FIRST if first else _LATER
        total = sum(map(mul, weights, self.values(first=first)))
        probability = 1 / (1 + math.exp(-total))
        if first or self.covered_alone < WHOLE:
            return probability
        return max(probability, self.knowledge(first=True))

    @property
    def follow_up(self) -> bool:
        """Whether the question is better asked together with the earlier subject.

        It is if it points back, or unless passages elsewhere have more of its words: clearly
        more, where they do not tell that it stands alone.
        """
        share = NEAR if self.alone < UNSURE else 1.0
        return self.refers or self.covered_joined >= share * self.covered_alone


class Dialogue:
    """Decides with searches on the question and on the earlier subject with the question."""

    def __init__(self, knowledge_base: KnowledgeBase) -> None:
        self._knowledge_base = knowledge_base
        self._contexts: OrderedDict[tuple[object, ...], str] = OrderedDict()

    async def decide(
        self, before: Sequence[str], question: str, allowed: Collection[str] | None = None
    ) -> Decision:
        """Return what to do with the question after what was asked before.

        `allowed` names the assistants that may be searched, by default all of them.
        """
        try:
            every = await self._knowledge_base.assistants()
            available = [each for each in every if allowed is None or each.name in allowed]
            searches = _Searches(self._knowledge_base, available)
            context = ""
            for earlier in before[-TURNS:]:
                context = await self._context(searches, context, earlier)
            return await _decide(searches, context, question)
        except KnowledgeBaseError:
            # Whether it holds something about this cannot be told: the look-up says so.
            return Decision(knowledge=True, question=question)

    async def joined(self, context: str, question: str) -> str:
        """Return the question with the subject of an earlier one before it.

        Raises:
            KnowledgeBaseError: The knowledge base could not be searched.
        """
        available = await self._knowledge_base.assistants()
        about = await _Searches(self._knowledge_base, available)(context)
        return _joined(_subject(context, about), question)

    async def _context(self, searches: "_Searches", context: str, earlier: str) -> str:
        """Return the standalone question that stands after an earlier turn."""
        key = (searches.names, context, earlier)
        if key not in self._contexts:
            decision = await _decide(searches, context, earlier)
            self._contexts[key] = decision.question if decision.knowledge else context
            if len(self._contexts) > _REMEMBERED:
                self._contexts.popitem(last=False)
        self._contexts.move_to_end(key)
        return self._contexts[key]


class _Searches:
    """The searches of one decision, each made once."""

    def __init__(self, knowledge_base: KnowledgeBase, available: Sequence[Assistant]) -> None:
        self._knowledge_base = knowledge_base
        self._available = available
        self._found: dict[str, Sequence[Passage]] = {}
        self.names = tuple(each.name for each in available)

    async def __call__(self, query: str) -> Sequence[Passage]:
        if query not in self._found:
            findings = await self._knowledge_base.search(
                query, assistants=self._available, limit=LOOKED_AT
            )
            self._found[query] = findings.passages
        return self._found[query]


async def signals_of(knowledge_base: KnowledgeBase, context: str, question: str) -> Signals:
    """Return the signals of a question after a context, which may be empty.

    Raises:
        KnowledgeBaseError: The knowledge base could not be searched.
    """
    available = await knowledge_base.assistants()
    return (await _look(_Searches(knowledge_base, available), context, question)).signals


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found for a question alone, and for the whole question after a context."""

    signals: Signals
    alone: Sequence[Passage]
    whole: str
    joined: Sequence[Passage]


async def _look(searches: _Searches, context: str, question: str) -> _Look:
    if not context:
        alone = await searches(question)
        signals = await asyncio.to_thread(_signals, question, "", question, alone, alone)
        return _Look(signals, alone, question, alone)
    alone, about = await asyncio.gather(searches(question), searches(context))
    subject = await asyncio.to_thread(_subject, context, about)
    whole = _joined(subject, question)
    joined = await searches(whole)
    signals = await asyncio.to_thread(_signals, question, subject, whole, alone, joined)
    return _Look(signals, alone, whole, joined)


async def _decide(searches: _Searches, context: str, question: str) -> Decision:
    if not without_courtesy(question):
        return Decision(knowledge=False, question=question)
    look = await _look(searches, context, question)
    knowledge = look.signals.knowledge(first=not context) >= KNOWLEDGE
    if knowledge and context and look.signals.follow_up:
        return Decision(knowledge=True, question=look.whole, assistants=_names(look.joined))
    names = _names(look.alone) if knowledge else ()
    return Decision(knowledge=knowledge, question=question, assistants=names)


def _signals(
    question: str,
    subject: str,
    whole: str,
    alone: Sequence[Passage],
    joined: Sequence[Passage],
) -> Signals:
    asked, about = terms(question), terms(subject)
    found = [_analysis(passage) for passage in joined]
    near = [each for each in found if coverage(about, each.everything) >= _ABOUT]
    best = _best(terms(whole), joined)
    covered = _covered(asked, near)
    return Signals(
        alone=_best(asked, alone),
        covered_alone=_covered(asked, [_analysis(passage) for passage in alone]),
        covered_joined=covered,
        evidence=1 - math.exp(-covered * sum(term.weight for term in asked)),
        gain=best - max((features(about, each).relevance for each in found), default=0.0),
        asks=asks(question),
        refers=refers(question),
        addresses=addresses(question),
    )


def _subject(context: str, about: Sequence[Passage]) -> str:
    """Return the words of the context that name its subject.

    Those are its words that stand in the headings of what it found, else its rarest words.
    """
    headings = [_analysis(passage).heading for passage in about[:2]]
    words_of_context = terms(context)
    named = [
        term.surface
        for term in words_of_context
        if term.weight > _SUBJECT_WEIGHT
        and any(term.presence(heading) > _ABOUT for heading in headings)
    ] or [term.surface for term in words_of_context if term.weight > _RARE_WEIGHT]
    return " ".join(named[:_SUBJECT_WORDS]) or context


def _joined(subject: str, question: str) -> str:
    colon = "：" if language(question) == "zh" else ": "
    return f"{subject}{colon}{question}"


def _best(asked: Sequence[Term], passages: Sequence[Passage]) -> float:
    """Return the relevance of the best passage, by its words or by its own score.

    The score of another knowledge base is a similarity, which is high for unrelated texts too.
    """
    return max(
        (
            max(features(asked, _analysis(passage)).relevance, 2 * passage.score - 1)
            for passage in passages
        ),
        default=0.0,
    )


def _covered(asked: Sequence[Term], passages: Sequence[Analysis]) -> float:
    return max((coverage(asked, passage.everything) for passage in passages), default=0.0)


def _analysis(passage: Passage) -> Analysis:
    return analysis(passage.text, f"{passage.document}\n{passage.location}")


def _names(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Return the assistants that the best passages come from, at most three."""
    best = max((passage.score for passage in passages), default=0.0)
    near = (each.assistant for each in passages if each.score >= 0.6 * best)
    return tuple(dict.fromkeys(near))[:3]
