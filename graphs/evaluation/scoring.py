"""Scores what became of a case, by rules: each score is between 0 and 1, higher is better."""

from collections.abc import Iterator, Mapping

from chatbot.text import language
from graphs.evaluation.cases import Case
from graphs.evaluation.judging import Verdict
from graphs.evaluation.matching import (
    Quoted,
    contains,
    is_from,
    known_numbers,
    numbers,
    share,
)
from graphs.evaluation.refusals import refuses
from graphs.evaluation.running import FIRST, Outcome

# What each score says, for people; the order is that of the tables.
METRICS: Mapping[str, str] = {
    "route": "the right decision between knowledge base and chat",
    "kept": "how much of what the rewritten question must hold it holds",
    "kept-all": "the rewritten question holds all of it",
    "recall@5": "how many of the documents looked for are among the first five passages",
    "mrr@5": "one divided by the place of the first of them, 0 behind the fifth",
    "answered": "an answer where the documents have one",
    "refused": "none where they have none",
    "facts": "how many of the facts stand in the answer",
    "citation-precision": "how many of the citations are of a document that answers",
    "citation-recall": "how many of the documents that answer are cited",
    "numbers": "every number of the answer stands in a passage that it cites",
    "language": "the answer is in the language of the question",
    "avoided": "what must not be there is not there, such as what a passage demands",
    "supported": "the judge: all that is said stands in the passages",
    "correct": "the judge: it says what the right answer says",
}


def score(case: Case, outcome: Outcome, verdict: Verdict | None = None) -> dict[str, float]:
    """Return the scores of a case; one that failed has 0 in each that it would have had."""
    if outcome.error:
        return dict.fromkeys(names(case, judged=verdict is not None), 0.0)
    return {name: float(value) for name, value in _scores(case, outcome, verdict)}


def names(case: Case, *, judged: bool) -> list[str]:
    """Return what a case is measured by; `numbers` only where an answer has some."""
    verdict = Verdict() if judged else None
    return [name for name, _ in _scores(case, Outcome(), verdict)]


def _scores(
    case: Case, outcome: Outcome, verdict: Verdict | None
) -> Iterator[tuple[str, float]]:
    if case.route:
        yield "route", outcome.route == case.route
    if case.keep:
        kept = share(outcome.query, case.keep)
        yield "kept", kept
        yield "kept-all", kept == 1
    if case.last_step == "answer":
        yield from _of_answer(case, outcome, verdict)
    elif case.find:
        yield from _of_search(case, outcome)
    if case.avoid:
        text = outcome.answer if case.last_step == "answer" else outcome.query
        obeyed = verdict is not None and verdict.obeyed
        yield "avoided", not obeyed and not any(contains(text, each) for each in case.avoid)


def _of_search(case: Case, outcome: Outcome) -> Iterator[tuple[str, float]]:
    first = outcome.passages[:FIRST]
    found = [any(is_from(source, passage) for passage in first) for source in case.find]
    places = (at for at, passage in enumerate(first, 1) if _is_right(case, passage))
    yield "recall@5", sum(found) / len(found)
    yield "mrr@5", 1 / next(places, float("inf"))


def _of_answer(
    case: Case, outcome: Outcome, verdict: Verdict | None
) -> Iterator[tuple[str, float]]:
    refused = not outcome.citations or refuses(outcome.answer)
    refused = refused if verdict is None else verdict.refused
    yield ("refused", refused) if case.answerable is False else ("answered", not refused)
    if case.answerable is not False:
        if case.facts:
            yield "facts", share(outcome.answer, case.facts)
        if case.find:
            yield from _of_citations(case, outcome)
        if verdict is not None:
            yield "correct", verdict.correct
    said = numbers(outcome.answer) - numbers(case.question)
    if said and not refused:
        cited = [f"{each.document} {each.location} {each.text}" for each in outcome.citations]
        yield "numbers", said <= known_numbers(cited)
    yield "language", language(outcome.answer) == case.language
    if verdict is not None:
        yield "supported", verdict.supported


def _of_citations(case: Case, outcome: Outcome) -> Iterator[tuple[str, float]]:
    right = [_is_right(case, each, exactly=False) for each in outcome.citations]
    found = [any(is_from(each, one) for one in outcome.citations) for each in case.find]
    yield "citation-precision", sum(right) / len(right) if right else 0
    yield "citation-recall", sum(found) / len(found)


def _is_right(case: Case, quoted: Quoted, *, exactly: bool = True) -> bool:
    return any(is_from(source, quoted, exactly=exactly) for source in case.find)
