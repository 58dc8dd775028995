from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.errors import PromptError
from chatbot.prompts import HOLES, Prompts


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_fills_a_hole_is_never_read_again(text: str) -> None:
    prompts = Prompts({"router": "[$assistants|$intents]"})
    shown = prompts.render("router", assistants=f"<{text}>", intents="x")
    assert shown.startswith("[<")
    tricky = prompts.render("router", assistants="{0} ${x} $intents {{y}} %s", intents="x")
    assert tricky == "[{0} ${x} $intents {{y}} %s|x]"


def test_a_file_replaces_the_shipped_one_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text(
        "\ufeff用$language回答。$instructions", encoding="utf-8"
    )
    prompts = Prompts.load(tmp_path)
    assert prompts.render("answer", language="中文", instructions="") == "用中文回答。"
    shipped = Prompts.load()
    assert prompts.render("unanswered") == shipped.render("unanswered")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"$nonsense", "unknown holes", id="a hole that nothing fills"),
        pytest.param(b"costs 5 $ a day", "lone \\$", id="a lone dollar sign"),
        pytest.param(b"\xff\xfe\xff", "UTF-8", id="not UTF-8"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "chat.md").write_bytes(content)
    with pytest.raises(PromptError, match=told) as raised:
        Prompts.load(tmp_path)
    assert str(tmp_path / "chat.md") in raised.value.message


def test_a_file_that_replaces_nothing_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "anser.md").write_text("x", encoding="utf-8")
    Prompts.load(tmp_path)
    assert "anser.md in PROMPTS_DIR replaces no prompt" in caplog.text


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="PROMPTS_DIR"):
        Prompts.load(tmp_path / "nowhere")


def test_a_missing_value_is_named() -> None:
    with pytest.raises(PromptError, match="intents"):
        Prompts.load().render("router", assistants="")


def test_every_prompt_ships() -> None:
    prompts = Prompts.load()
    for name, holes in HOLES.items():
        assert prompts.render(name, **dict.fromkeys(holes, "x"))
