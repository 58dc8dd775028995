"""Passages that match too little to be quoted are shown to a model that judges them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatbot.knowledge.local import LocalKnowledgeBase
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[LocalKnowledgeBase]:
    for name, text in {"cellar": "The cellar is dry.", "cars": "Taxis are refunded."}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.md").write_text(f"# About {name}\n\n{text}")
    knowledge_base = LocalKnowledgeBase(tmp_path, None, generous=True)
    yield knowledge_base
    await knowledge_base.aclose()


async def test_the_model_judges_what_hardly_matches(
    bench: Bench, opened: LocalKnowledgeBase
) -> None:
    question = "My boss and I shared taxis to Rome, who reimburses our driver?"
    bench.script(
        Said(call=Call("knowledge_base", '{"assistants": ["cellar"]}')), Said(["Refunded [1]."])
    )

    answer = await bench.bot_with(knowledge=opened).ask(question)

    assert "Taxis are refunded." in bench.asked(1)
    assert answer.metadata["assistants"] == ["cellar", "cars"]
    (cited,) = answer.citations
    assert cited["document"] == "note.md"
    assert cited["score"] < 0.14


async def test_what_matches_in_another_assistant_comes_before_what_hardly_does(
    bench: Bench, opened: LocalKnowledgeBase
) -> None:
    bench.script(
        Said(call=Call("knowledge_base", '{"assistants": ["cellar"]}')), Said(["Yes [1]."])
    )

    answer = await bench.bot_with(knowledge=opened).ask("Are taxis refunded?")

    assert answer.citations[0]["assistant"] == "cars"
    assert answer.citations[0]["score"] > 0.14
    assert "The cellar is dry." not in bench.asked(1)


async def test_what_shares_nothing_is_still_nothing(
    bench: Bench, opened: LocalKnowledgeBase
) -> None:
    bench.script(
        Said(call=Call("knowledge_base", '{"assistants": ["cellar"]}')), Said(["Nothing."])
    )

    await bench.bot_with(knowledge=opened).ask("quantum gravity")

    assert "nothing about it was found" in bench.asked(1)
