"""Which sentences of the passages the extractive model quotes, and in what form."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.models.extractive_quoting import (
    LONGEST_QUOTATION,
    MOST_QUOTATIONS,
    MOST_STEPS,
    quotations,
)

LEAVE = {
    "number": 1,
    "location": "Leave › Annual leave",
    "text": "Everybody has ten days of annual leave. Unused days expire in March. "
    "The canteen opens at noon.",
}
LEAVE_ZH = {
    "number": 2,
    "location": "休假制度 › 年假",
    "text": "每位员工每年有十天年假。未休的年假三月底作废。食堂中午开放。",
}
CODES = {
    "number": 3,
    "location": "Error codes",
    "text": "| Code | Meaning | Remedy |\n| --- | --- | --- |\n"
    "| E21 | no pressure | bleed \\| fill |\n| E30 | locked | descale |",
}
INSTRUCTIONS = [
    "Empty the tray.",
    "Fill a tank.",
    "Press both keys.",
    "Wait five minutes.",
    "Rinse everything.",
    "Close valves.",
    "Start again.",
]
STEPS = {
    "number": 4,
    "location": "Manual › How to descale",
    "text": "\n".join(f"{at}. {step}" for at, step in enumerate(INSTRUCTIONS, 1)),
}


def quoted(question: str, *passages: dict[str, Any]) -> list[str]:
    return [each.text for each in quotations(question, passages)]


def test_the_sentence_that_answers_is_quoted_with_its_number() -> None:
    (best,) = quotations("When do unused days expire?", [LEAVE])

    assert best.text == "Unused days expire in March."
    assert best.number == 1


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param("How many days of annual leave are there?", 1, id="English"),
        pytest.param("年假有几天", 2, id="Chinese"),
    ],
)
def test_sentences_in_the_language_of_the_question_are_preferred(
    question: str, expected: int
) -> None:
    assert {each.number for each in quotations(question, [LEAVE, LEAVE_ZH])} == {expected}


def test_a_passage_in_the_other_language_is_quoted_where_there_is_no_better() -> None:
    assert quoted("E30 是什么意思", CODES) == ["Code: E30 · Meaning: locked · Remedy: descale"]


def test_a_table_row_is_quoted_with_the_names_of_its_columns() -> None:
    assert quoted("What does E21 mean?", CODES) == [
        "Code: E21 · Meaning: no pressure · Remedy: bleed | fill"
    ]


def test_instructions_stay_together_and_in_order() -> None:
    assert quoted("How do I descale?", STEPS) == INSTRUCTIONS


def test_the_same_sentence_is_quoted_once() -> None:
    again = {**LEAVE, "number": 9}

    assert quoted("When do unused days expire?", LEAVE, again) == [
        "Unused days expire in March."
    ]


def test_the_best_passage_comes_first() -> None:
    other = {"number": 1, "location": "Canteen", "text": "The canteen has unused plates."}
    found = quotations("When do unused days expire?", [other, {**LEAVE, "number": 2}])

    assert found[0].number == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "The *annual* __leave__ is ten days.",
            "The annual leave is ten days.",
            id="emphasis",
        ),
        pytest.param(
            "- Annual leave is ten days.", "Annual leave is ten days.", id="list mark"
        ),
        pytest.param("> ## Annual leave is ten days.", "Annual leave is ten days.", id="marks"),
        pytest.param(
            "Annual leave [1] is ten 【2】 days [ID:3].",
            "Annual leave is ten days.",
            id="markers of its own",
        ),
        pytest.param(
            "Annual leave: see [rules](http://x/y).", "Annual leave: see rules.", id="link"
        ),
        pytest.param(
            "Annual\x00 leave\x1b\u202e is ten days.",
            "Annual  leave  is ten days.",
            id="control characters",
        ),
        pytest.param(
            "Annual leave is {{ ten }} ${days} %s.",
            "Annual leave is {{ ten }} ${days} %s.",
            id="template syntax",
        ),
    ],
)
def test_what_is_quoted_is_plain(text: str, expected: str) -> None:
    assert quoted("annual leave", {"number": 1, "text": text}) == [expected]


def test_a_long_sentence_is_shortened() -> None:
    (text,) = quoted("annual leave", {"number": 1, "text": "annual leave " * 200})

    assert len(text) <= LONGEST_QUOTATION + 1
    assert text.endswith("…")


@pytest.mark.parametrize(
    "passages",
    [
        pytest.param([], id="no passages"),
        pytest.param([{"number": 1, "text": ""}], id="empty text"),
        pytest.param([{"number": 1, "text": "| --- |\n***\n[1]"}], id="nothing to say"),
        pytest.param([{"number": 1, "text": None, "location": None}], id="nothing at all"),
    ],
)
def test_nothing_to_quote(passages: list[dict[str, Any]]) -> None:
    assert quotations("annual leave", passages) == []


@pytest.mark.parametrize(
    ("question", "text"),
    [
        pytest.param("leave " * 8000, "leave. " * 8000, id="English"),
        pytest.param("年假" * 25_000, "年假。" * 16_000, id="Chinese"),
        pytest.param("{" * 50_000, "| a " * 12_000, id="template syntax and a table"),
        pytest.param("*" * 50_000, "**a " * 12_000, id="emphasis without an end"),
        pytest.param("[" * 50_000, "[a" * 25_000, id="links without an end"),
    ],
)
def test_long_texts_take_no_time(question: str, text: str) -> None:
    began = time.process_time()  # of this process alone: others may be busy

    quotations(question, [{"number": each, "text": text} for each in range(6)])

    assert time.process_time() - began < 10  # what grows with the square takes minutes


@given(st.text(max_size=80), st.lists(st.text(max_size=300), max_size=4))
def test_any_text_can_be_quoted(question: str, texts: list[str]) -> None:
    passages = [{"number": at, "text": text} for at, text in enumerate(texts, 1)]

    found = quotations(question, passages)

    assert len(found) <= MOST_QUOTATIONS + MOST_STEPS
    for each in found:
        assert 1 <= each.number <= len(texts)
        assert "\n" not in each.text
        assert each.text.strip()


CLAIMS = [
    {
        "number": 1,
        "text": "Submit each claim early. A claim needs a receipt.",
        "location": "Claim",
    },
    {
        "number": 2,
        "text": "| City | Hotel |\n| --- | --- |\n| Beijing | 650 yuan |\n| Other | 380 yuan |",
        "location": "Limits",
    },
]


def test_a_telling_word_that_is_not_said_brings_its_sentence() -> None:
    found = quotations("How do I claim a hotel?", CLAIMS)

    assert any("Hotel: 650 yuan" in each.text for each in found)


def test_amounts_are_preferred_where_an_amount_is_asked_for() -> None:
    dishes = [
        "hot soup",
        "brown rice",
        "fresh bread",
        "green beans",
        "sweet fruit",
        "cold milk",
    ]
    text = " ".join(f"A meal has {dish}." for dish in dishes) + " A meal takes 20 coins."

    assert "A meal takes 20 coins." in quoted(
        "How much is a meal?", {"number": 1, "text": text}
    )
    assert "A meal takes 20 coins." not in quoted("Is it a meal?", {"number": 1, "text": text})
