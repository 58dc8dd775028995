"""Reads a conversation by what the knowledge base finds: the route and the whole question."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from chatbot.domain import Assistant, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.ports import KnowledgeBase
from chatbot.terms import Term, coverage, terms
from chatbot.text import tokens

TURNS = 4  # of the conversation that a follow-up may go back
_LOOKED_AT = 6
_REMEMBERED = 512
_LONGEST_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to look something up, the question as it stands alone, and where to look."""

    knowledge: bool
    question: str
    assistants: tuple[str, ...] = ()


class Dialogue:
    """Decides with searches of `knowledge_base` on the question and on what it may go on with."""

    def __init__(self, knowledge_base: KnowledgeBase) -> None:
        self._knowledge_base = knowledge_base
        self._found: OrderedDict[str, tuple[Passage, ...]] = OrderedDict()

    async def decide(self, before: Sequence[str], question: str) -> Decision:
        """Return what to do with the question after what was asked before."""
        try:
            available = await self._knowledge_base.assistants()
        except KnowledgeBaseError:
            available = ()
        context = ""
        for earlier in before[-TURNS:]:
            decision = await self._step(context, earlier, available)
            context = decision.question if decision.knowledge else context
        return await self._step(context, question, available)

    async def _step(
        self, context: str, question: str, available: Sequence[Assistant]
    ) -> Decision:
        asked = terms(question)
        alone = await self._search(question, available)
        alone_score = _best(alone)
        alone_cover = max((coverage(asked, _words(each)) for each in alone), default=0.0)
        if context:
            subject = _subject(context, asked)
            joined_question = f"{subject} {question}"
            joined = await self._search(joined_question, available)
            about = terms(context)
            cover = max(
                (
                    coverage(asked, _words(each))
                    for each in joined
                    if coverage(about, _words(each)) > 0.3
                ),
                default=0.0,
            )
            if joined and cover >= 0.5 and cover >= alone_cover - 0.1:
                return Decision(True, joined_question, _names(joined))
        if alone_score >= 0.4:
            return Decision(True, question, _names(alone))
        return Decision(False, question)

    async def _search(self, query: str, available: Sequence[Assistant]) -> tuple[Passage, ...]:
        try:
            found = await self._knowledge_base.search(
                query, assistants=available, limit=_LOOKED_AT
            )
        except KnowledgeBaseError:
            return ()
        return tuple(found.passages)


def _best(passages: Sequence[Passage]) -> float:
    return max((each.score for each in passages), default=0.0)


def _words(passage: Passage) -> frozenset[str]:
    return frozenset(tokens(f"{passage.document}\n{passage.location}\n{passage.text}"))


def _names(passages: Sequence[Passage]) -> tuple[str, ...]:
    best = _best(passages)
    near = [each.assistant for each in passages if each.score >= 0.6 * best]
    return tuple(dict.fromkeys(near))[:3]


def _subject(context: str, asked: Sequence[Term]) -> str:
    """Return the words of the context that name what it was about."""
    return context
