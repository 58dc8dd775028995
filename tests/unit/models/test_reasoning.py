"""Reasoning in tags, in whatever pieces it comes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatbot.models.reasoning import ThinkTags


def split(pieces: list[str], *, opened: bool = False) -> tuple[str, str, int]:
    tags = ThinkTags(opened=opened)
    parts = [*(tags.feed(piece) for piece in pieces), tags.end()]
    answers, reasonings = zip(*parts, strict=True)
    return "".join(answers), "".join(reasonings), tags.stray


@pytest.mark.parametrize(
    ("text", "answer", "reasoning", "stray"),
    [
        pytest.param("Paris.", "Paris.", "", 0, id="none"),
        pytest.param("<think>Hm.</think>Paris.", "Paris.", "Hm.", 0, id="one"),
        pytest.param("<think>\nHm.\n</think>\n\nParis.\n", "Paris.\n", "Hm.\n", 0,
                     id="line breaks"),
        pytest.param("<THINK>Hm.</Think>Paris.", "Paris.", "Hm.", 0, id="capitals"),
        pytest.param('<think depth="2" >Hm.</think >Paris.', "Paris.", "Hm.", 0, id="more"),
        pytest.param("<thinking>Hm.</thinking>Paris.", "Paris.", "Hm.", 0, id="thinking"),
        pytest.param("<think>Hm.", "", "Hm.", 0, id="without end"),
        pytest.param("<think>a<think>b</think>c</think>d", "cd", "ab", 1, id="nested"),
        pytest.param("Hm.</think>Paris.", "Hm.Paris.", "", 1, id="without beginning"),
        pytest.param("a<think>b</think>c<think>d</think>e", "ace", "bd", 0, id="several"),
        pytest.param("<think></think>Paris.", "Paris.", "", 0, id="empty"),
        pytest.param("<think/>Paris.", "Paris.", "", 0, id="closed at once"),
        pytest.param('a<think x="1" />\nb', "ab", "", 0, id="closed at once, with more"),
        pytest.param("Write `<think>` so.", "Write `<think>` so.", "", 0, id="quoted"),
        pytest.param("1 < 2 <b>x</b> <thinker>", "1 < 2 <b>x</b> <thinker>", "", 0, id="other"),
        pytest.param("x <", "x <", "", 0, id="the beginning of a tag at the end"),
        pytest.param("x <think", "x <think", "", 0, id="most of a tag at the end"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_reasoning_leaves_the_answer(
    text: str, answer: str, reasoning: str, stray: int, size: int
) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert split(pieces) == (answer, reasoning, stray)


def test_a_template_that_opens_the_reasoning() -> None:
    assert split(["Hm", ".</th", "ink>\n\nParis."], opened=True) == ("Paris.", "Hm.", 0)
    assert split(["Paris."], opened=True) == ("", "Paris.", 0)


def test_text_without_a_tag_is_not_held_back() -> None:
    tags = ThinkTags()
    assert tags.feed("1 < 2") == ("1 < 2", "")
    assert tags.feed(" and <") == (" and ", "")
    assert tags.feed("b>") == ("<b>", "")


TEXT = st.lists(
    st.sampled_from(
        ["<", ">", "/", "think", "<think>", "</think>", "`", " ", "\n", "a", "思考"]
    ),
    max_size=12,
).map("".join)


@settings(deadline=None)
@given(TEXT, st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_the_pieces_do_not_matter(text: str, sizes: list[int]) -> None:
    pieces = []
    position = 0
    for size in sizes:
        pieces.append(text[position : position + size])
        position += size
    pieces.append(text[position:])
    assert split(pieces) == split([text])
