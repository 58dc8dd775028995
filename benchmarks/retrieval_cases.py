"""The labelled conversations and the corpora that they are about."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from chatbot.domain import Passage
from chatbot.knowledge.local import LocalKnowledgeBase
from graphs.evaluation.matching import is_from

HERE = Path(__file__).parent
CORPORA: Mapping[str, Path] = {
    "sample": HERE.parent / "examples" / "knowledge",
    **{name: HERE / "data" / "corpora" / name for name in ("museum", "backup", "garden")},
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question of a conversation.

    `kind` is `new` (stands alone), `follow` (goes on with the subject) or `chat`; `context` is
    the last question that stood alone; `gold` is a file and a text in the passage that answers.
    """

    corpus: str
    question: str
    kind: str
    context: str
    gold: str = ""
    style: str = "direct"

    def answered_by(self, passage: Passage) -> bool:
        """Return whether the passage is the one that was labelled."""
        return is_from(self.gold, passage)


def dialogues(name: str = "dialogues") -> list[list[Case]]:
    """Return the labelled conversations, or those `dialogues_held_back` from all fitting."""
    found = []
    for dialogue in json.loads((HERE / "data" / f"{name}.json").read_text("utf-8")):
        context = ""
        cases = []
        for turn in dialogue["turns"]:
            cases.append(Case(corpus=dialogue["corpus"], context=context, **turn))
            if turn["kind"] == "new":
                context = turn["question"]
        found.append(cases)
    return found


def paraphrases() -> list[Case]:
    """Return questions in other words than the documents have.

    Their style is `paraphrase`, or `paraphrase, held back` for those that nobody looked at
    while the search was made better.
    """
    found = json.loads((HERE / "data" / "paraphrases.json").read_text("utf-8"))
    styles = {"open": "paraphrase", "held": "paraphrase, held back"}
    return [
        Case(kind="new", context="", style=styles[part], **each)
        for part, every in found.items()
        for each in every
    ]


def small_talk() -> list[str]:
    """Return what people say that is not for a knowledge base, Chinese and English in turn."""
    said = json.loads((HERE / "data" / "small_talk.json").read_text("utf-8"))
    return [text for pair in zip(said["zh"], said["en"], strict=True) for text in pair]


@asynccontextmanager
async def knowledge_bases(
    *, generous: bool = False
) -> AsyncIterator[Mapping[str, LocalKnowledgeBase]]:
    """Open a knowledge base over each corpus."""
    with TemporaryDirectory() as data_dir:
        opened = {
            name: LocalKnowledgeBase(folder, Path(data_dir), generous=generous)
            for name, folder in CORPORA.items()
        }
        try:
            yield opened
        finally:
            for each in opened.values():
                await each.aclose()
