"""Fits the weights of `chatbot/models/extractive_clarity.py` and measures how well they hold.

    python -m benchmarks.clarity_fit

Every labelled question is asked twice: of all passages, which answer it, and without the
passage that was labelled for it. What is then found is as near to the question as the same
documents have it, and does not answer. Held out is each corpus in turn.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_cases import CORPORA, dialogues, paraphrases
from benchmarks.routing import fit
from chatbot.domain import Passage
from chatbot.knowledge.local.refresh import Snapshot, refresh
from chatbot.knowledge.local.search import THRESHOLD, candidates
from chatbot.knowledge.local.storage import Storage
from chatbot.models.extractive_clarity import (
    ANSWERED,
    NEAR,
    clarity,
    passage_analysis,
    signals,
)
from chatbot.text import language
from graphs.evaluation.cases import OneOf, find_set
from graphs.evaluation.matching import is_from

Vector = NDArray[np.float64]
LIMIT = 8


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was found for a question, and whether it answers."""

    corpus: str
    kind: str
    answers: bool
    question: str
    values: Vector | None
    sure: float  # as shipped


def everything_asked() -> list[Asked]:
    """Ask every question of its own corpus, with and without its answer."""
    found: list[Asked] = []
    snapshots = {name: _snapshot(folder) for name, folder in CORPORA.items()}
    for corpus, kind, question, gold in _questions():
        snapshot = snapshots[corpus]
        every = _search(snapshot, question)
        if gold:
            passages = every[:LIMIT]
            if any(is_from(one, each) for one in gold for each in passages):
                found.append(_asked(corpus, kind, question, passages, answers=True))
            every = [
                each
                for each in every
                if language(each.text) == language(question)  # the other one has it, too
                and not any(is_from(one, each) for one in gold)
            ]
        found.append(_asked(corpus, kind, question, every[:LIMIT], answers=False))
    return found


def _questions() -> list[tuple[str, str, str, Sequence[OneOf]]]:
    every = [*chain(*dialogues()), *paraphrases()]
    found: list[tuple[str, str, str, Sequence[OneOf]]] = [
        (case.corpus, case.style, case.question, [case.gold])
        for case in every
        if case.kind == "new" and "held back" not in case.style
    ]
    for name in ("retrieval", "answers"):
        for each in find_set(name)[1]:
            if each.documents or not (each.find or each.answerable is False):
                continue
            kind = "paraphrase" if "words" in each.kind else each.kind
            kind = "direct" if kind == "answerable" else kind
            found.append(("sample", kind, each.question, each.find))
    return found


def _snapshot(folder: Path) -> Snapshot:
    with TemporaryDirectory() as data_dir:
        return refresh(folder, Storage(Path(data_dir), folder), None)


def _search(snapshot: Snapshot, question: str) -> list[Passage]:
    everyone = [each.id for each in snapshot.assistants]
    every = sorted(candidates(snapshot, question, everyone), key=lambda each: -each.order)
    return [
        snapshot.passage(each.number, each.features.relevance)
        for each in every
        if each.features.relevance >= THRESHOLD
    ]


def _asked(
    corpus: str, kind: str, question: str, passages: Sequence[Passage], *, answers: bool
) -> Asked:
    given = [asdict(each) for each in passages]
    values = signals(question, [passage_analysis(each) for each in given])
    return Asked(
        corpus=corpus,
        kind=kind,
        answers=answers,
        question=question,
        values=None if values is None else np.array([*values, 1.0]),
        sure=clarity(question, question, given),
    )


def fitted(known: Sequence[Asked]) -> Vector:
    """Return the weights; what is found for nothing needs none."""
    rows = [each for each in known if each.values is not None]
    values = [each.values for each in rows if each.values is not None]
    return fit(values, [each.answers for each in rows], [1.0] * len(rows))


def _held_out(asked: Sequence[Asked]) -> list[float]:
    weights = {
        corpus: fitted([each for each in asked if each.corpus != corpus]) for corpus in CORPORA
    }
    return [
        0.0
        if each.values is None
        else float(1 / (1 + np.exp(-each.values @ weights[each.corpus])))
        for each in asked
    ]


def main() -> None:
    """Print the weights, and what becomes of the questions."""
    asked = everything_asked()
    out = Console(width=110)
    names = "passage, sentence, heading, evidence, lead, bias:"
    out.print(names, np.round(fitted(asked), 1).tolist())
    columns = {"as shipped": [each.sure for each in asked], "held out": _held_out(asked)}
    table = Table("questions", "n", *(f"{each}: answered / near" for each in columns))
    for answers in (True, False):
        for kind in dict.fromkeys(each.kind for each in asked if each.answers == answers):
            chosen = [
                at
                for at, each in enumerate(asked)
                if each.kind == kind and each.answers == answers
            ]
            cells = []
            for sure in columns.values():
                shares = np.array([sure[at] for at in chosen])
                answered, near = shares >= ANSWERED, (shares >= NEAR) & (shares < ANSWERED)
                cells.append(f"{answered.mean():.3f} / {near.mean():.3f}")
            name = kind if answers or kind == "unanswerable" else f"{kind}, without its answer"
            table.add_row(name, str(len(chosen)), *cells)
    out.print(table)


if __name__ == "__main__":
    main()
