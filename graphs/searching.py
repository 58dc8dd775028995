"""Searches the knowledge base for one turn, and tells nothing from not reachable."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from chatbot.domain import Assistant, Findings, Outcome, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.fusion import fuse
from chatbot.knowledge.ranking import rank
from chatbot.limits import Limits
from chatbot.queries import differ_much
from graphs.tracing import Searcher, traced_search
from graphs.turn import LiveTurn

ASKED_AT_ONCE = 5
NEAREST = 3  # documents that are named where nothing was found


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchResult:
    """What was found, who was asked, and whether the search itself worked.

    `nearest` names the documents that come closest where nothing was found, `uncertain` are
    passages that may be about the question, `failed` names what could not be searched.
    """

    passages: Sequence[Passage] = ()
    uncertain: Sequence[Passage] = ()
    nearest: Sequence[str] = ()
    asked: Sequence[Assistant] = ()
    failed: Sequence[str] = ()
    outcome: Outcome = "empty"


def outcome_of(error: KnowledgeBaseError) -> Outcome:
    """Return what a failed look-up means for the answer."""
    return "forbidden" if error.kind == "forbidden" else "unavailable"


def not_asked(names: Iterable[str]) -> str:
    """Return why others are asked than the caller has named."""
    return f"{', '.join(names)} could not be asked; others were chosen instead."


async def search(
    turn: LiveTurn,
    knowledge: Searcher,
    limits: Limits,
    *,
    chosen: Sequence[Assistant],
    available: Sequence[Assistant],
) -> SearchResult:
    """Ask the chosen assistants; where they fail or know nothing, ask the others.

    If all fail that the caller has named, those are asked that he has not.

    The turn's record holds the query. What failed is noted in the turn.
    """
    query: str = turn.record["query"]
    first = chosen or rank(query, available, ASKED_AT_ONCE)
    result = await _ask(turn, knowledge, limits, query, first)
    others = [assistant for assistant in available if assistant not in first]
    if others and not result.passages:
        more = await _ask(turn, knowledge, limits, query, rank(query, others, ASKED_AT_ONCE))
        result = _together(result, more, limits.passages)
    if turn.elsewhere and result.outcome in {"unavailable", "forbidden"}:
        turn.degrade("assistants", not_asked(result.failed))
        more = await _ask(
            turn, knowledge, limits, query, rank(query, turn.elsewhere, ASKED_AT_ONCE)
        )
        result = _together(result, more, limits.passages)
    if passages := result.passages or result.uncertain:
        return replace(result, passages=passages, outcome="found")
    if result.outcome == "empty" and result.failed:
        # Nobody can tell that there is nothing while a part was not searched.
        turn.note(not_searched=list(result.failed))
        return replace(result, outcome="unavailable")
    return result


def _together(first: SearchResult, second: SearchResult, limit: int) -> SearchResult:
    """Return the result of two searches of which the first found nothing."""
    outcomes = {first.outcome, second.outcome}
    return SearchResult(
        passages=second.passages,
        uncertain=fuse((first.uncertain, second.uncertain), limit),
        nearest=_first([*first.nearest, *second.nearest]),
        asked=[*first.asked, *second.asked],
        failed=list(dict.fromkeys([*first.failed, *second.failed])),
        outcome="empty" if "empty" in outcomes else first.outcome,
    )


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
        return _failure(assistants, "unavailable")
    except KnowledgeBaseError as error:
        turn.degrade("knowledge", error.message, error)
        return _failure(assistants, outcome_of(error))
    for name, reason in found.failures.items():
        turn.degrade("knowledge", f"{name}: {reason}")
    return SearchResult(
        passages=found.passages,
        uncertain=found.uncertain,
        nearest=found.nearest,
        asked=assistants,
        failed=list(found.failures),
        outcome="found" if found.passages else "empty",
    )


def _failure(assistants: Sequence[Assistant], outcome: Outcome) -> SearchResult:
    names = [assistant.name for assistant in assistants]
    return SearchResult(asked=assistants, failed=names, outcome=outcome)


async def _search_all(
    knowledge: Searcher,
    queries: Sequence[str],
    assistants: Sequence[Assistant],
    limit: int,
) -> Findings:
    """Return what all the queries find, best first by their ranks in each."""
    found = await asyncio.gather(
        *(
            traced_search(knowledge, query, assistants=assistants, limit=limit)
            for query in queries
        )
    )
    if len(found) == 1:
        return found[0]
    failures = {name: reason for each in found for name, reason in each.failures.items()}
    return Findings(
        passages=fuse((each.passages for each in found), limit),
        uncertain=fuse((each.uncertain for each in found), limit),
        failures=failures,
        nearest=_first(name for each in found for name in each.nearest),
    )


def _first(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))[:NEAREST]
