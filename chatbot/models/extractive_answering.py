"""What the extractive model says: quotations, that there is nothing, or what it can do."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from chatbot.domain import Assistant
from chatbot.errors import KnowledgeBaseError
from chatbot.models.extractive_clarity import ANSWERED, NEAR, clarity
from chatbot.models.extractive_phrases import PHRASES
from chatbot.models.extractive_quoting import MOST_QUOTATIONS, Quotation, quotations
from chatbot.models.extractive_wording import asks, means_chatbot, names_subject
from chatbot.ports import KnowledgeBase
from chatbot.text import language

_SUBJECTS = 8  # that are named where it says what it can do
_NEAREST = 3  # documents that are named where nothing was found
_CLOSEST = 2  # sentences that are quoted where it is not clear that they answer


async def answer(knowledge_base: KnowledgeBase, facts: Mapping[str, Any]) -> AsyncIterator[str]:
    """Give the answer to a question, piece by piece.

    `facts` are what the message to answer carries: `question`, as it was `asked`, `passages`
    and `outcome` of the look-up, `nearest` documents, the `assistants` that may be asked.
    """
    question, outcome = str(facts["question"]), facts.get("outcome")
    phrases = PHRASES[language(question)]
    passages = facts.get("passages") or ()
    sure, pieces = await asyncio.to_thread(_quoted, facts, passages) if passages else (0.0, ())
    if pieces:
        yield phrases.lead if sure >= ANSWERED else phrases.unsure
        for piece in pieces:
            yield f"\n\n- {piece.text} [{piece.number}]"
    elif outcome in {"unavailable", "forbidden"}:
        yield phrases.unavailable if outcome == "unavailable" else phrases.forbidden
    elif outcome == "empty" or passages:
        yield phrases.nothing(facts.get("nearest") or _documents(passages))
    else:
        available = await _available(knowledge_base, facts.get("assistants"))
        if asks(question) and names_subject(question) and not means_chatbot(question):
            # it was not looked up because nothing is about it
            nearest = await _nearest(knowledge_base, question, available)
            yield f"{phrases.nothing(nearest)}\n\n"
        yield phrases.chat([each.name for each in available][:_SUBJECTS])
    yield f"\n\n{phrases.hint}"


def _quoted(
    facts: Mapping[str, Any], passages: Sequence[Mapping[str, Any]]
) -> tuple[float, Sequence[Quotation]]:
    """Return how sure it is that the passages answer, and what is worth quoting of them."""
    question = str(facts["question"])
    sure = clarity(question, str(facts.get("asked") or question), passages)
    if sure < NEAR:
        return sure, ()
    most = MOST_QUOTATIONS if sure >= ANSWERED else _CLOSEST
    return sure, quotations(question, passages, most)


async def _available(
    knowledge_base: KnowledgeBase, allowed: Collection[str] | None
) -> Sequence[Assistant]:
    """Return the assistants that may be spoken of; without `allowed` all of them."""
    try:
        every = await knowledge_base.assistants()
    except KnowledgeBaseError:
        return ()
    return [each for each in every if allowed is None or each.name in allowed]


async def _nearest(
    knowledge_base: KnowledgeBase, question: str, available: Sequence[Assistant]
) -> Sequence[str]:
    """Return the documents that come closest, also where their passages hardly match."""
    try:
        found = await knowledge_base.search(question, assistants=available, limit=_NEAREST)
    except KnowledgeBaseError:
        return ()
    return found.nearest or _documents([asdict(each) for each in found.passages])


def _documents(passages: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    names = (str(each.get("document") or "") for each in passages)
    return [name for name in dict.fromkeys(names) if name][:_NEAREST]
