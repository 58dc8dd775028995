"""Fits the weights of `chatbot/relevance.py` and measures how well they hold elsewhere.

    python -m benchmarks.retrieval_fit

About a question are the passages that were labelled for it. Not about it is what the same
corpus has for questions about another corpus and for small talk. The figure is the probability
that the best passage of a question that can be answered scores higher than the best passage for
one that cannot, with weights that were fitted without that corpus.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.retrieval_cases import CORPORA, dialogues, knowledge_bases, small_talk
from benchmarks.routing import fit
from chatbot.knowledge.local.refresh import Snapshot, refresh
from chatbot.knowledge.local.search import Candidate, candidates
from chatbot.knowledge.local.storage import Storage
from chatbot.models.extractive_routing import Dialogue

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The candidates of one question in one corpus, and which of them were labelled."""

    corpus: str
    values: Matrix
    right: NDArray[np.bool_]
    answerable: bool


async def everything_asked() -> list[Asked]:
    """Ask every question of every corpus, follow-ups as the extractive model makes them."""
    found = []
    cases = [each for dialogue in dialogues() for each in dialogue]
    async with knowledge_bases() as opened:
        for corpus, knowledge_base in opened.items():
            snapshot = await asyncio.to_thread(_snapshot, CORPORA[corpus])
            everyone = [each.id for each in snapshot.assistants]
            model = Dialogue(knowledge_base)
            for case in cases:
                mine = case.corpus == corpus and case.kind != "chat"
                question = case.question
                if case.kind == "follow":
                    if not mine:
                        continue
                    question = await model.joined(case.context, question)
                matches = list(candidates(snapshot, question, everyone))
                right = [
                    mine and case.answered_by(snapshot.passage(each.number, 0.0))
                    for each in matches
                ]
                found.append(_asked(corpus, matches, right, answerable=mine))
            for said in small_talk():
                matches = list(candidates(snapshot, said, everyone))
                nothing = [False] * len(matches)
                found.append(_asked(corpus, matches, nothing, answerable=False))
    return found


def _snapshot(folder: Path) -> Snapshot:
    with TemporaryDirectory() as data_dir:
        return refresh(folder, Storage(Path(data_dir), folder), None)


def _asked(
    corpus: str,
    matches: Sequence[Candidate],
    right: Sequence[bool],
    *,
    answerable: bool,
) -> Asked:
    return Asked(
        corpus=corpus,
        values=np.array([[*each.features.values(), 1.0] for each in matches]),
        right=np.array(right, dtype=bool),
        answerable=answerable,
    )


def fitted(known: Sequence[Asked]) -> Matrix:
    """Return the weights: each question counts once, whatever number of candidates it has."""
    rows, labels, shares = [], [], []
    for each in known:
        for value, right in zip(each.values, each.right, strict=True):
            rows.append(value)
            labels.append(bool(right))
            shares.append(1 / each.right.sum() if right else 1 / len(each.right))
    return fit(rows, labels, shares, balanced=False)


def separation(asked: Sequence[Asked], weights: Matrix) -> float:
    """Return how often a question that can be answered scores above one that cannot."""
    best = [float((e.values @ weights).max()) if len(e.values) else -99.0 for e in asked]
    able = np.array([value for value, e in zip(best, asked, strict=True) if e.answerable])
    other = np.array([value for value, e in zip(best, asked, strict=True) if not e.answerable])
    return float(np.mean(able[:, None] > other[None, :]))


async def main() -> None:
    """Print the weights and the figures."""
    asked = await everything_asked()
    out = Console()
    out.print(
        "evidence, passage, sentence, heading, bias:", np.round(fitted(asked), 1).tolist()
    )
    for corpus in CORPORA:
        weights = fitted([each for each in asked if each.corpus != corpus])
        held = [each for each in asked if each.corpus == corpus]
        out.print(f"{corpus}, held out: {separation(held, weights):.3f} of {len(held)}")


if __name__ == "__main__":
    asyncio.run(main())
