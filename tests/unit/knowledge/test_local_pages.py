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
    assert mended(pages[:2]) == ["Text of page a.", "Text of page b."]


PRINTED = "11/30/26, 1:39 PM  Leave"
ADDRESS = "https://intranet.example/leave?id=7"


@pytest.mark.parametrize(
    ("pages", "left"),
    [
        pytest.param(
            [
                f"{PRINTED}\nLeave\nTen days.\n{ADDRESS} 1/2",
                f"{PRINTED}\nSick leave.\n{ADDRESS} 2/2",
            ],
            ["Leave\nTen days.", "Sick leave."],
            id="head and foot of a browser",
        ),
        pytest.param(
            ["Ten days.\n1/2", "Sick leave.\n2/2"], ["Ten days.", "Sick leave."], id="1/2"
        ),
        pytest.param(["Ten days.\n- 1 -"], ["Ten days."], id="one page, with its number"),
        pytest.param(["Ten days.\nPage 7 of 9"], ["Ten days."], id="a page of a part"),
        pytest.param(["年假十天。\n第 1 页 共 2 页"], ["年假十天。"], id="Chinese page number"),
        pytest.param(["年假十天。\n第3頁"], ["年假十天。"], id="traditional characters"),
        pytest.param(
            ["Left\nOne.\n11", "Right\nTwo.\n12", "Left\nThree.\n13", "Right\nFour.\n14"],
            ["One.", "Two.", "Three.", "Four."],
            id="heads of facing pages, counted from another number",
        ),
        pytest.param(["Hotel: 650", "Hotel: 700"], None, id="amounts that differ"),
        pytest.param(["Rooms\n650", "Meals\n100"], None, id="numbers that count nothing"),
        pytest.param(
            ["| Item | Yuan |\n| Room | 650 |", "| Item | Yuan |\n| Meal | 100 |"],
            None,
            id="a table that goes on",
        ),
        pytest.param(["Ten days\nor\n1\nin\nall.", "x"], None, id="a number inside"),
        pytest.param(["Ten days.\n2026/11/30"], None, id="a date"),
        pytest.param(["Ten days.\nPage 3 says more."], None, id="a sentence about a page"),
    ],
)
def test_heads_and_page_numbers_are_left_out_and_nothing_else(
    pages: list[str], left: list[str] | None
) -> None:
    assert mended(pages) == (pages if left is None else left)


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
