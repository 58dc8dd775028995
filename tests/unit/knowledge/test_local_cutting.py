"""How documents are cut into passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.knowledge.local.cutting import LONGEST, Piece, cut

TABLE = "| code | meaning |\n| --- | --- |\n" + "".join(
    f"| E{number} | the meaning of error number {number}, told at some length |\n"
    for number in range(40)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "# A\n\nOne.\n\n## B\n\nTwo.\n\n# C\n\nThree.",
            [Piece("A", "One."), Piece("A › B", "Two."), Piece("C", "Three.")],
            id="headings",
        ),
        pytest.param(
            "A\n===\n\nOne.\n\nB\n---\nTwo.",
            [Piece("A", "One."), Piece("A › B", "Two.")],
            id="underlined headings",
        ),
        pytest.param(
            "# A\n\n```\n# no heading\n```\n", [Piece("A", "```\n# no heading\n```")], id="code"
        ),
        pytest.param(
            "# *A* `b` [c](http://x) #\n\nOne.", [Piece("A b c", "One.")], id="mark-up"
        ),
        pytest.param("---\ntitle: T\n---\nOne.", [Piece("", "One.")], id="front matter"),
        pytest.param("No heading.", [Piece("", "No heading.")], id="no heading"),
        pytest.param("# A\r\n\r\nOne.\r\n", [Piece("A", "One.")], id="Windows line ends"),
        pytest.param("# A\n\n- one\n- two\n", [Piece("A", "- one\n- two")], id="list"),
        pytest.param("# A\n\n---\n\nOne.", [Piece("A", "---\nOne.")], id="rule"),
        pytest.param("# A\n\n## B\n", [], id="headings without text"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_markdown(text: str, expected: list[Piece]) -> None:
    assert cut(text, markdown=True)[1] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "Title\n\nPart\n\nA sentence.\n\nOther\n\nMore text.",
            [Piece("Title › Part", "A sentence."), Piece("Title › Other", "More text.")],
            id="short lines are headings",
        ),
        pytest.param(
            "员工手册\n\n第一章 总则\n本章说明适用范围。\n\n第二章 休假\n年假十天。",
            [
                Piece("员工手册 › 第一章 总则", "本章说明适用范围。"),
                Piece("员工手册 › 第二章 休假", "年假十天。"),
            ],
            id="Chinese chapters",
        ),
        pytest.param(
            "One sentence.\n\nAnother one.",
            [Piece("", "One sentence.\nAnother one.")],
            id="sentences are no headings",
        ),
        pytest.param(
            "Steps\n\n1. First do this\n2. Then that",
            [Piece("Steps", "1. First do this\n2. Then that")],
            id="numbered steps are no headings",
        ),
    ],
)
def test_plain_text(text: str, expected: list[Piece]) -> None:
    assert cut(text, markdown=False)[1] == expected


@pytest.mark.parametrize(
    ("text", "markdown", "title"),
    [
        pytest.param("# A\n\nOne.", True, "A", id="first heading"),
        pytest.param("---\ntitle: 'The T'\n---\n# A\n\nOne.", True, "The T", id="front matter"),
        pytest.param("标题\n\n正文在这里。", False, "标题", id="first line of plain text"),
        pytest.param("Only text.", True, "", id="none"),
    ],
)
def test_title(text: str, markdown: bool, title: str) -> None:
    assert cut(text, markdown=markdown)[0] == title


def test_a_table_is_cut_between_rows_and_keeps_its_head() -> None:
    _, pieces = cut(f"# Codes\n\n{TABLE}", markdown=True)

    assert len(pieces) > 1
    assert all(piece.text.startswith("| code | meaning |\n| --- |") for piece in pieces)
    rows = [line for piece in pieces for line in piece.text.split("\n")[2:]]
    assert [row.split("|")[1].strip() for row in rows] == [f"E{number}" for number in range(40)]


def test_a_table_that_fits_stays_whole() -> None:
    table = "\n".join(TABLE.split("\n")[:6])
    text = f"# Codes\n\n{'A sentence before it. ' * 20}\n\n{table}\n"

    assert [piece.text for piece in cut(text, markdown=True)[1]][-1].endswith(table)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("这是一个很长的段落，讲的是同一件事。" * 200, id="long Chinese paragraph"),
        pytest.param(
            "This long paragraph tells the same thing again. " * 200, id="long English"
        ),
        pytest.param("字" * 5000, id="no end of a sentence"),
    ],
)
def test_long_text_is_cut_between_sentences_and_loses_nothing(text: str) -> None:
    pieces = cut(text, markdown=True)[1]

    assert all(len(piece.text) <= LONGEST for piece in pieces)
    assert "".join(piece.text for piece in pieces).replace(" ", "") == text.replace(" ", "")


@given(st.text(alphabet="#|-=`~> *1.\n\t a字。：\r{}", max_size=400), st.booleans())
def test_any_text_is_cut_and_keeps_its_words(text: str, markdown: bool) -> None:
    _, pieces = cut(text, markdown=markdown)

    kept = "".join(piece.text + piece.location for piece in pieces)
    for piece in pieces:
        assert piece.text.strip()
    if not markdown and not text.startswith("---"):
        assert kept.count("字") >= sum(piece.text.count("字") for piece in pieces)
