"""`chatbot knowledge search`: what a query finds, without a model and with one."""

from pathlib import Path

import pytest

from tests.integration.cli.examined import DEAD
from tests.integration.cli.terminal import run

MODEL = {"OPENAI_BASE_URL": f"http://{DEAD}/v1", "OPENAI_API_KEY": "k", "LLM_MODEL": "scripted"}


@pytest.fixture
def knowledge(tmp_path: Path) -> Path:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    text = "# Trips\n\nTaxis home are refunded.\n\n# 差旅\n\n出租车费由公司报销。\n"
    (folder / "trips.md").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("query", "line"),
    [
        pytest.param("Who pays a late cab home?", "Taxis home are refunded.", id="English"),
        pytest.param("晚上打车的钱谁出", "出租车费由公司报销。", id="Chinese"),
    ],
)
def test_what_hardly_matches_is_for_a_model(
    tmp_path: Path, knowledge: Path, query: str, line: str
) -> None:
    alone = {"KNOWLEDGE_DIR": str(knowledge)}
    without = run(tmp_path, "knowledge", "search", query, settings=alone)
    judged = run(tmp_path, "knowledge", "search", query, settings=alone | MODEL)

    assert "Nothing in the knowledge base is about that." in without.err
    assert line not in without.out
    assert "A language model would be shown what comes closest:" in judged.err
    assert line in judged.out
