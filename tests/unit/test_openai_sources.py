"""The foot of an answer, and the answer without it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.openai.sources import sources, without_sources


def citation(
    number: int, document: str, location: str = "", assistant: str = "A"
) -> dict[str, Any]:
    return {
        "number": number,
        "document": document,
        "location": location,
        "assistant": assistant,
    }


def test_sources_stand_at_the_foot() -> None:
    made = sources([citation(1, "a.md", "Leave"), citation(3, "年假.md")])
    assert made == "\n\n---\n**[1]** a.md · Leave · A  \n**[3]** 年假.md · A"
    assert sources([]) == ""


def test_a_name_is_no_markup() -> None:
    made = sources([citation(1, "[x](javascript:alert(1))\n# <b>")])
    assert made.endswith(r"\[x\]\(javascript:alert\(1\)\) \# \<b\> · A")


@pytest.mark.parametrize(
    "answer", ["", "Text.", "A\n\n---\nB", "A\n\n---\n**[1]** and more\n\nB"]
)
def test_answer_without_a_foot_stays(answer: str) -> None:
    assert without_sources(answer) == answer


@given(answer=st.text(), names=st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_foot_goes_as_it_came(answer: str, names: list[str]) -> None:
    foot = sources([citation(number, name) for number, name in enumerate(names, 1)])
    assert without_sources(answer.rstrip() + foot) in {
        answer.rstrip(),
        without_sources(answer.rstrip()),
    }
