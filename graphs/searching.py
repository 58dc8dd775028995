"""Searches the knowledge base for one turn, and tells nothing from not reachable."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chatbot.domain import Assistant, Findings, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.fusion import fuse
from chatbot.knowledge.ranking import rank
from chatbot.messages import Outcome
from chatbot.ports import Limits
from chatbot.queries import differ_much
from graphs.turn import LiveTurn

ASKED_AT_ONCE = 5
NEAREST = 3  # documents that are named where nothing was found


class Searcher(Protocol):
    """The part of a knowledge base that is needed here."""

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """What was found, who was asked, and whether the search itself worked.

    `nearest` names the documents that come closest where nothing was found.
    """

    passages: Sequence[Passage] = ()
    nearest: Sequence[str] = ()
    asked: Sequence[Assistant] = ()
    outcome: Outcome = "empty"


def outcome_of(error: KnowledgeBaseError) -> Outcome:
    """Return what a failed look-up means for the answer."""
    return "forbidden" if error.kind == "forbidden" else "unavailable"


async def search(
    turn: LiveTurn,
    knowledge: Searcher,
    limits: Limits,
    *,
    chosen: Sequence[Assistant],
    available: Sequence[Assistant],
) -> SearchResult:
    """Ask the chosen assistants; where they fail or know nothing, ask the others.

    The turn's record holds the query. What failed is noted in the turn.
    """
    query: str = turn.record["query"]
    first = chosen or rank(query, available, ASKED_AT_ONCE)
    result = await _ask(turn, knowledge, limits, query, first)
    others = [assistant for assistant in available if assistant not in first]
    if result.passages or not others:
        return result
    second = await _ask(turn, knowledge, limits, query, rank(query, others, ASKED_AT_ONCE))
    if second.outcome not in {"found", "empty"}:
        return result
    # Nobody can tell that there is nothing while a part was not asked.
    outcome = second.outcome if second.passages else result.outcome
    asked = [*first, *second.asked]
    nearest = _first([*result.nearest, *second.nearest])
    return SearchResult(passages=second.passages, nearest=nearest, asked=asked, outcome=outcome)


async def _ask(
    turn: LiveTurn,
    knowledge: Searcher,
    limits: Limits,
    query: str,
    assistants: Sequence[Assistant],
) -> SearchResult:
    if not assistants:
        return SearchResult()
    queries = [query, turn.question] if differ_much(query, turn.question) else [query]
    try:
        async with asyncio.timeout(limits.knowledge_seconds):
            found = await _search_all(knowledge, queries, assistants, limits.passages)
    except TimeoutError:
        reason = f"The knowledge base did not answer within {limits.knowledge_seconds:g} s."
        turn.degrade("knowledge", reason)
        return SearchResult(asked=assistants, outcome="unavailable")
    except KnowledgeBaseError as error:
        turn.degrade("knowledge", error.message)
        return SearchResult(asked=assistants, outcome=outcome_of(error))
    for name, reason in found.failures.items():
        turn.degrade("knowledge", f"{name}: {reason}")
    outcome: Outcome = "found" if found.passages else "empty"
    return SearchResult(
        passages=found.passages, nearest=found.nearest, asked=assistants, outcome=outcome
    )


async def _search_all(
    knowledge: Searcher,
    queries: Sequence[str],
    assistants: Sequence[Assistant],
    limit: int,
) -> Findings:
    """Return what all the queries find, best first by their ranks in each."""
    found = await asyncio.gather(
        *(knowledge.search(query, assistants=assistants, limit=limit) for query in queries)
    )
    if len(found) == 1:
        return found[0]
    failures = {name: reason for each in found for name, reason in each.failures.items()}
    return Findings(
        passages=fuse((each.passages for each in found), limit),
        failures=failures,
        nearest=_first(name for each in found for name in each.nearest),
    )


def _first(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))[:NEAREST]
