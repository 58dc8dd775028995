"""Fits and measures how the extractive model routes questions and recognizes follow-ups.

    python -m benchmarks.routing          the accuracy on questions that were held out
    python -m benchmarks.routing --fit    the weights, fitted on all questions
    python -m benchmarks.routing --held-back    on questions that nobody looked at

Held out are, one after the other, each corpus with its questions and half of the small talk:
the weights are fitted on the rest. Every question counts with and without its question mark.
"""

import asyncio
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_cases import CORPORA, dialogues, knowledge_bases, small_talk
from chatbot.models.extractive_routing import KNOWLEDGE, Signals, signals_of
from chatbot.text import language

Vector = NDArray[np.float64]
REGULARIZATION = 0.5
SHARES = {"new": 1.0, "switch": 1.0, "follow": 2.0, "chat": 1.0}  # follow-ups are hardest


@dataclass(frozen=True, kw_only=True)
class Example:
    """What the model sees of a question, and what it should do with it."""

    corpus: str
    kind: str
    question: str
    context: str
    signals: Signals
    half: int  # of the small talk, or -1

    @property
    def group(self) -> str:
        """The row of the table that it counts in."""
        place = "after others" if self.context else "first"
        return f"{self.kind}, {place}, {language(self.question)}"


async def examples() -> list[Example]:
    """Return every labelled question with its signals."""
    chance = random.Random(7)  # noqa: S311 - the same pairs each time
    found: list[Example] = []
    async with knowledge_bases() as opened:

        async def add(corpus: str, kind: str, context: str, said: str, half: int = -1) -> None:
            for question in {said: None, said.rstrip("?？"): None}:
                signals = await signals_of(opened[corpus], context, question)
                found.append(
                    Example(
                        corpus=corpus,
                        kind=kind,
                        question=question,
                        context=context,
                        signals=signals,
                        half=half,
                    )
                )

        subjects: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for case in (case for cases in dialogues() for case in cases):
            await add(case.corpus, case.kind, case.context, case.question)
            if case.kind == "new":
                subjects[case.corpus].append((case.question, case.gold.partition("#")[0]))
        for corpus, asked in subjects.items():
            for question, file in asked:
                others = [
                    other
                    for other, elsewhere in asked
                    if elsewhere != file and language(other) == language(question)
                ]
                for context in chance.sample(others, min(2, len(others))):
                    await add(corpus, "switch", context, question)
            for at, said in enumerate(small_talk()):
                context = chance.choice(
                    [other for other, _ in asked if language(other) == language(said)]
                )
                await add(corpus, "chat", "", said, at // 2 % 2)
                await add(corpus, "chat", context, said, at // 2 % 2)
    return found


async def held_back() -> list[Example]:
    """Return the questions that neither weights nor features were chosen by."""
    found: list[Example] = []
    async with knowledge_bases() as opened:
        for case in (case for cases in dialogues("dialogues_held_back") for case in cases):
            signals = await signals_of(opened[case.corpus], case.context, case.question)
            found.append(
                Example(
                    corpus=case.corpus,
                    kind=case.kind,
                    question=case.question,
                    context=case.context,
                    signals=signals,
                    half=-1,
                )
            )
    return found


def fit(
    rows: Sequence[Vector],
    labels: Sequence[bool],
    shares: Sequence[float],
    *,
    balanced: bool = True,
) -> Vector:
    """Fit a logistic regression, `balanced` if both answers weigh the same."""
    features, right = np.array(rows), np.array(labels, dtype=float)
    share = np.array(shares)
    if balanced:
        share /= np.where(right > 0, share[right > 0].sum(), share[right == 0].sum())
        share *= len(rows) / 2
    penalty = REGULARIZATION * np.diag([*np.ones(features.shape[1] - 1), 1e-6])
    weights = np.zeros(features.shape[1])
    for _ in range(50):
        sure = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (share * (sure - right)) + penalty @ weights
        curve = (features.T * (share * sure * (1 - sure))) @ features + penalty
        weights -= np.linalg.solve(curve, slope)
    return weights


def fitted(known: Sequence[Example]) -> tuple[Vector, Vector]:
    """Return the weights for a first question, and those for later ones."""
    return _fitted(known, first=True), _fitted(known, first=False)


def _fitted(known: Sequence[Example], *, first: bool) -> Vector:
    found = [each for each in known if bool(each.context) != first]
    return fit(
        [np.array(each.signals.values(first=first), dtype=float) for each in found],
        [each.kind != "chat" for each in found],
        [SHARES[each.kind] * (1.0 if each.half < 0 else 0.5) for each in found],
    )


def routed(example: Example, first: Vector, later: Vector) -> bool:
    """Return whether the knowledge base is asked."""
    is_first = not example.context
    limit = float(np.log(KNOWLEDGE / (1 - KNOWLEDGE)))
    values = example.signals.values(first=is_first)
    return float(np.dot(values, first if is_first else later)) >= limit


def held_out(every: Sequence[Example]) -> Mapping[str, list[tuple[bool, bool]]]:
    """Route each question with weights that were fitted without its corpus and small talk."""
    answers: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for corpus in CORPORA:
        for half in (0, 1):
            known = [e for e in every if e.corpus != corpus and e.half != half]
            weights = fitted(known)
            for example in every:
                if example.corpus == corpus and example.half in ((half,) if half else (0, -1)):
                    _note(answers, example, asked=routed(example, *weights))
    return answers


def shipped(every: Sequence[Example]) -> Mapping[str, list[tuple[bool, bool]]]:
    """Route each question as the extractive model does."""
    answers: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for example in every:
        asked = example.signals.knowledge(first=not example.context) >= KNOWLEDGE
        _note(answers, example, asked=asked)
    return answers


def _note(
    answers: dict[str, list[tuple[bool, bool]]], example: Example, *, asked: bool
) -> None:
    right = asked == (example.kind != "chat")
    related = example.signals.follow_up == (example.kind == "follow")
    answers[example.group].append((right, related))


def _print(columns: Mapping[str, Mapping[str, Sequence[tuple[bool, bool]]]]) -> None:
    shipped_answers = columns["as shipped"]
    table = Table("questions", "n", *columns, "taken as a follow-up")
    for group in sorted(shipped_answers):
        shares = [
            f"{np.mean([right for right, _ in each[group]]):.3f}" for each in columns.values()
        ]
        related = np.mean([related for _, related in shipped_answers[group]])
        if not group.startswith("follow"):
            related = 1 - related
        later = ", first" not in group and not group.startswith("chat")
        size = str(len(shipped_answers[group]))
        table.add_row(group, size, *shares, f"{related:.3f}" if later else "")
    for name, kinds in (("knowledge", ("new", "follow", "switch")), ("chat", ("chat",))):
        shares = []
        for answers in columns.values():
            every = [
                r for group in answers if group.startswith(kinds) for r, _ in answers[group]
            ]
            shares.append(f"{np.mean(every):.3f}")
        table.add_row(f"all, {name}", str(len(every)), *shares, "", style="bold")
    Console(width=110).print(table)


async def main() -> None:
    """Print the figures, or the weights."""
    if "--held-back" in sys.argv:
        _print({"as shipped": shipped(await held_back())})
        return
    every = await examples()
    if "--fit" in sys.argv:
        for name, weights in zip(("first", "later"), fitted(every), strict=True):
            Console().print(name, np.round(weights, 1).tolist())
        return
    _print({"as shipped": shipped(every), "held out": held_out(every)})


if __name__ == "__main__":
    asyncio.run(main())
