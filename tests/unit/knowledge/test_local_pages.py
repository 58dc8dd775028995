"""Pages: broken lines, running heads, and passages that say their page."""

import pytest

from chatbot.knowledge.local.cutting import Piece, cut_pages
from chatbot.knowledge.local.pages import mended

LONG = "Hotels in large cities cost at most six hundred and fifty yuan for each"
HAN = "员工" * 20


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param(f"{LONG}\nnight.", f"{LONG} night.", id="a line that was broken to fit"),
        pytest.param(f"{LONG} em-\nployee.", f"{LONG} employee.", id="a word that was broken"),
        pytest.param(f"{LONG} A-\nB.", f"{LONG} A- B.", id="a dash before a capital"),
        pytest.param(f"{HAN}\n年假十天。", f"{HAN}年假十天。", id="no space in Chinese"),
        pytest.param(f"{LONG}.\nFood\n{LONG}", f"{LONG}.\nFood\n{LONG}", id="heading between"),
        pytest.param(f"{LONG}\n- one\n- two", f"{LONG}\n- one\n- two", id="list items"),
        pytest.param(f"{LONG}\n（一）住宿", f"{LONG}\n（一）住宿", id="Chinese list items"),
        pytest.param("Hotel: 650\nMeals: 100", "Hotel: 650\nMeals: 100", id="short lines"),
        pytest.param(f"{LONG}\n\nnight.", f"{LONG}\n\nnight.", id="two paragraphs"),
        pytest.param(f"| {LONG} |\n| night |", f"| {LONG} |\n| night |", id="table"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_lines_of_a_paragraph_are_joined(page: str, expected: str) -> None:
    assert mended([page]) == [expected]


def test_what_stands_on_most_pages_is_left_out() -> None:
    pages = [f"The Company\nText of page {'abcd'[at]}.\nPage {at + 1} of 4" for at in range(4)]

    assert mended(pages) == [f"Text of page {letter}." for letter in "abcd"]
    assert mended(pages[:2]) == pages[:2]


def test_a_chapter_is_no_title() -> None:
    title, pieces = cut_pages(["第一章 总则\n\n年假有十天。"])

    assert title == ""
    assert pieces == [Piece("第一章 总则 › p. 1", "年假有十天。")]


def test_passages_say_their_page_and_headings_go_on() -> None:
    table = "| a | b |\n| --- | --- |\n| 1 | 2 |"
    title, pieces = cut_pages(
        [
            "Travel policy\n\n1. Hotels\n\nA hotel costs 650 yuan.",
            f"A room is booked early.\n\n2. Trains\n\nSecond class.\n\n{table}",
        ]
    )

    assert title == "Travel policy"
    assert pieces == [
        Piece("Travel policy › 1. Hotels › p. 1", "A hotel costs 650 yuan."),
        Piece("Travel policy › 1. Hotels › p. 2", "A room is booked early."),
        Piece("Travel policy › 2. Trains › p. 2", f"Second class.\n{table}"),
    ]
