"""Measures the embedded knowledge base with 100,000 passages: opened, first search, later ones.

    python -m benchmarks.scale [passages]

The text is made of words as frequent as words are, Chinese and English. Each opening happens in
a process of its own, as after a restart; the figures are medians over the openings.
"""

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval_cases import CORPORA, dialogues
from chatbot.knowledge.local import LocalKnowledgeBase
from chatbot.knowledge.local.refresh import refresh
from chatbot.knowledge.local.search import by_meaning
from chatbot.knowledge.local.storage import Storage
from chatbot.knowledge.local.vectors import VectorStore
from chatbot.text import words

PASSAGES = 100_000
PER_DOCUMENT = 200
WORDS = 70  # of a passage
RARE_WORDS = 40_000
DIMENSIONS = 1024
OPENINGS = 5


def write_corpus(folder: Path, passages: int) -> None:
    """Write documents with so many passages altogether, half Chinese, half English."""
    chance = random.Random(3)  # noqa: S311 - the same text each time
    vocabularies = [_vocabulary(chance, chinese=chinese) for chinese in (True, False)]
    for number in range(passages // PER_DOCUMENT):
        vocabulary, weights = vocabularies[number % 2]
        separator = "" if number % 2 == 0 else " "
        parts = [f"# {separator.join(chance.choices(vocabulary, cum_weights=weights, k=4))}"]
        for _ in range(PER_DOCUMENT):
            found = chance.choices(vocabulary, cum_weights=weights, k=WORDS)
            parts.append(f"## {separator.join(found[:3])}\n\n{separator.join(found)}.")
        path = folder / f"part{number % 10}" / f"document{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(parts), encoding="utf-8")


def _vocabulary(chance: random.Random, *, chinese: bool) -> tuple[list[str], list[float]]:
    """Return the words of the sample texts and many rare ones, with Zipf's frequencies."""
    texts = [
        path.read_text("utf-8") for folder in CORPORA.values() for path in folder.rglob("*.*")
    ]
    known = {
        word.surface: None
        for text in texts
        for word in words(text)
        if (word.tag not in {"", "num"}) == chinese
    }
    signs = [chr(code) for code in range(0x4E00, 0x5E00)] if chinese else "abcdefghilmnoprstu"
    length = 2 if chinese else 7
    rare = ["".join(chance.choices(signs, k=length)) for _ in range(RARE_WORDS)]
    every = [*known, *rare]
    return every, list(accumulate(1 / (rank + 5) for rank in range(len(every))))


def questions() -> Iterator[str]:
    """Give the labelled questions, which are about the sample texts."""
    yield from (case.question for dialogue in dialogues() for case in dialogue)


async def measure(folder: Path, data_dir: Path) -> dict[str, float]:
    """Open the saved index and search; return milliseconds."""
    asked = list(questions())
    began = time.perf_counter()
    knowledge_base = LocalKnowledgeBase(folder, data_dir)
    await knowledge_base.skipped()  # waits for the whole first index, however long it takes
    opened = time.perf_counter()
    assistants = await knowledge_base.assistants()
    took = []
    for question in asked[:40]:
        start = time.perf_counter()
        await knowledge_base.search(question, assistants=assistants, limit=6)
        took.append((time.perf_counter() - start) * 1000)
    await knowledge_base.aclose()
    compared = await asyncio.to_thread(_compared, folder, data_dir)
    return {
        "open": (opened - began) * 1000,
        "first": took[0],
        "early": median(took[1:6]),
        "later": median(took[6:]),
        "worst": max(took[1:]),
        "first compared": compared[0],
        "compared": median(compared[1:]),
    }


def _compared(folder: Path, data_dir: Path) -> list[float]:
    """Compare a query's vector with those of all passages; return milliseconds."""
    snapshot = refresh(folder, Storage(data_dir, folder.absolute()), None)
    keys = snapshot.index.keys
    chance = np.random.default_rng(5)
    store = VectorStore(data_dir / "vectors")
    store.load()
    if len(missing := store.missing(keys)):
        vectors = chance.standard_normal((len(missing), DIMENSIONS), dtype=np.float32)
        store.add(keys[missing], vectors / np.float32(DIMENSIONS**0.5))
    everyone = {each.id for each in snapshot.assistants}
    took = []
    for _ in range(12):
        query = chance.standard_normal(DIMENSIONS, dtype=np.float32)
        start = time.perf_counter()
        found = store.similarities(keys, query)
        assert found is not None  # noqa: S101 - they all have the same size
        by_meaning(snapshot, found, everyone, 30, 0.5)
        took.append((time.perf_counter() - start) * 1000)
    return took


def main() -> None:
    """Index once, then open several times."""
    if len(sys.argv) == 3:  # noqa: PLR2004 - one opening: folder and data folder
        figures = asyncio.run(measure(Path(sys.argv[1]), Path(sys.argv[2])))
        sys.stdout.write(json.dumps(figures))
        return
    passages = int(sys.argv[1]) if len(sys.argv) > 1 else PASSAGES
    with TemporaryDirectory() as place:
        folder, data_dir = Path(place) / "knowledge", Path(place) / "data"
        write_corpus(folder, passages)
        began = time.perf_counter()
        _open(folder, data_dir)
        indexed = time.perf_counter() - began
        runs = [_open(folder, data_dir) for _ in range(OPENINGS)]
    table = Table("", "milliseconds, median of the openings")
    for name, label in (
        ("open", "opened from the saved index"),
        ("first", "first search"),
        ("early", "the next five, median"),
        ("later", "later ones, median"),
        ("worst", "the slowest after the first"),
        ("first compared", f"embeddings of {DIMENSIONS} dimensions compared, first"),
        ("compared", "the same later, median"),
    ):
        table.add_row(label, f"{median(run[name] for run in runs):.0f}")
    Console().print(f"{passages} passages, indexed in {indexed:.0f} s", table)


def _open(folder: Path, data_dir: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scale", str(folder), str(data_dir)]
    done = subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    main()
