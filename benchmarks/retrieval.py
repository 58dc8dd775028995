"""Measures recall@5 and MRR of the embedded knowledge base against plain BM25.

python -m benchmarks.retrieval
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_cases import CORPORA, Case, dialogues, knowledge_bases, paraphrases
from chatbot.domain import Passage
from chatbot.knowledge.local import LocalKnowledgeBase
from chatbot.knowledge.local.matrix import Matrix
from chatbot.knowledge.local.refresh import refresh
from chatbot.knowledge.local.storage import Storage
from chatbot.models.extractive_routing import Dialogue
from chatbot.text import language

LIMIT = 5
Ranking = Callable[[str], Sequence[Passage]]


async def main() -> None:
    """Print the figures for each kind of question."""
    ranks: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    async with knowledge_bases() as opened, knowledge_bases(generous=True) as generous:
        for corpus, knowledge_base in opened.items():
            plain = _plain_rankings(CORPORA[corpus])
            available = await knowledge_base.assistants()
            for case, query in await _queries(corpus, knowledge_base):
                found = await knowledge_base.search(query, assistants=available, limit=LIMIT)
                more = await generous[corpus].search(query, assistants=available, limit=LIMIT)
                answers = {
                    "with a model": more.shown,
                    "without": found.passages,
                }
                answers |= {name: rank(query) for name, rank in plain.items()}
                for name, passages in answers.items():
                    for group in _groups(case):
                        ranks[group][name].append(_rank(case, passages))
    _print(ranks)


async def _queries(corpus: str, knowledge_base: LocalKnowledgeBase) -> list[tuple[Case, str]]:
    """Return the questions of a corpus, follow-ups as the extractive model makes them whole."""
    model = Dialogue(knowledge_base)
    found = []
    for case in chain(*dialogues(), paraphrases()):
        if case.corpus != corpus or case.kind == "chat":
            continue
        query = case.question
        if case.kind == "follow":
            query = await model.joined(case.context, case.question)
        found.append((case, query))
    return found


def _plain_rankings(folder: Path) -> Mapping[str, Ranking]:
    """Return BM25 over characters and over words between white space, for comparison."""
    with TemporaryDirectory() as data_dir:
        snapshot = refresh(folder, Storage(Path(data_dir), folder), None)
    passages = [snapshot.passage(number, 0.0) for number in range(snapshot.index.size)]
    texts = [f"{each.document} {each.location} {each.text}".lower() for each in passages]
    return {
        "BM25, characters": _bm25(passages, texts, lambda text: [*text.replace(" ", "")]),
        "BM25, white space": _bm25(passages, texts, str.split),
    }


def _bm25(
    passages: Sequence[Passage], texts: Sequence[str], split: Callable[[str], list[str]]
) -> Ranking:
    cut = [split(text) for text in texts]
    numbers = {word: at for at, word in enumerate(dict.fromkeys(chain.from_iterable(cut)))}
    words = np.array([numbers[word] for each in cut for word in each], dtype=np.int32)
    lengths = np.array([len(each) for each in cut], dtype=np.int64)
    matrix = Matrix.of(words, lengths, len(numbers))

    def rank(query: str) -> Sequence[Passage]:
        counted = Counter(numbers[word] for word in split(query.lower()) if word in numbers)
        scores = matrix.rank(counted, len(passages))
        order = np.argsort(-scores, kind="stable")[:LIMIT]
        return [passages[each] for each in order if scores[each] > 0]

    return rank


def _rank(case: Case, passages: Sequence[Passage]) -> int:
    """Return the place of the labelled passage among the first five, or 0."""
    right = (at for at, passage in enumerate(passages, 1) if case.answered_by(passage))
    return next(right, 0)


def _groups(case: Case) -> list[str]:
    kind = "follow-up" if case.kind == "follow" else case.style
    return [f"{kind}, {language(case.question)}", f"all, {case.corpus}"]


def _print(ranks: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
    names = list(next(iter(ranks.values())))
    table = Table("questions", "n", *(f"{name}: recall@5 / MRR" for name in names))
    for group in sorted(ranks):
        cells = []
        for name in names:
            places = np.array(ranks[group][name])
            reciprocal = np.divide(1.0, places, out=np.zeros(len(places)), where=places > 0)
            cells.append(f"{np.mean(places > 0):.3f} / {reciprocal.mean():.3f}")
        table.add_row(group, str(len(ranks[group][names[0]])), *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    asyncio.run(main())
