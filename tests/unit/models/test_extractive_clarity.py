"""Whether passages answer a question, or are only about what it is about."""

import pytest

from chatbot.models.extractive_clarity import ANSWERED, NEAR, clarity

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
PUMP = {
    "number": 1,
    "text": "The pump draws water. Bleed the pump every month.",
    "location": "Pump",
}


@pytest.mark.parametrize(
    ("question", "asked", "answered"),
    [
        pytest.param("hotel Beijing", "hotel Beijing", True, id="about it"),
        pytest.param("quantum gravity", "quantum gravity", False, id="about something else"),
        pytest.param("hotel Beijing: How much?", "How much?", True, id="no words of its own"),
        pytest.param("hotel: And in Beijing?", "And in Beijing?", True, id="a word of its own"),
        pytest.param(
            "hotel Beijing: Who is president of France?",
            "Who is president of France?",
            False,
            id="only the earlier subject",
        ),
    ],
)
def test_what_answers(question: str, asked: str, *, answered: bool) -> None:
    assert (clarity(question, asked, CLAIMS) >= ANSWERED) is answered


@pytest.mark.parametrize(
    ("score", "least", "most"),
    [
        pytest.param(0.9, ANSWERED, 1.0, id="close in its meaning"),
        pytest.param(0.6, NEAR, ANSWERED, id="not so close"),
        pytest.param(None, 0.0, NEAR, id="no score"),
    ],
)
def test_what_was_found_by_its_meaning(score: float | None, least: float, most: float) -> None:
    passage = {"number": 1, "text": "The pump is oiled.", "score": score}

    assert least <= clarity("lubricate a machine", "lubricate a machine", [passage]) < most


@pytest.mark.parametrize(
    ("answerable", "near"),
    [
        pytest.param(
            "How often do I bleed the pump?", "Which colour has the pump?", id="another point"
        ),
        pytest.param("Does the pump draw water?", "Does the pump need oil?", id="a part"),
        pytest.param(
            "Hello, could you tell me how the pump is bled?",
            "How is the pump shipped abroad?",
            id="a greeting counts for nothing",
        ),
    ],
)
def test_a_question_near_the_subject_is_less_clear(answerable: str, near: str) -> None:
    sure = clarity(answerable, answerable, [PUMP])
    assert sure >= ANSWERED
    assert clarity(near, near, [PUMP]) < sure


def test_passages_that_match_alike_share_no_more_than_the_subject() -> None:
    question = "What does the pump cost?"
    alike = [{**PUMP, "text": f"The pump has a valve and a spring {at}."} for at in range(4)]

    assert clarity(question, question, alike) < clarity(question, question, alike[:1])


def test_without_passages_nothing_is_clear() -> None:
    assert clarity("What does the pump cost?", "What does the pump cost?", []) == 0
