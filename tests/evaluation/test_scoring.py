from collections.abc import Mapping
from typing import Any

import pytest

from chatbot.citations import Citation
from chatbot.domain import Passage
from graphs.evaluation.cases import Case
from graphs.evaluation.judging import Verdict
from graphs.evaluation.matching import contains, is_from, known_numbers, numbers
from graphs.evaluation.refusals import refuses
from graphs.evaluation.running import Outcome
from graphs.evaluation.scoring import score


def passage(document: str, text: str = "text") -> Passage:
    return Passage(
        id=text, text=text, document=document, document_id="1", assistant="a", score=0.5
    )


def citation(document: str, text: str = "text", number: int = 1) -> Citation:
    return Citation(
        number=number, document=document, document_id="1", assistant="a", text=text, score=0.5
    )


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("It costs 20,000 yuan.", "20000", True),
        ("It costs 20000 yuan.", "20,000", True),
        ("每年最高２０，０００元", "20,000元", True),
        ("It lasts 120 days.", "20", False),
        ("It lasts 12.5 days.", "12", False),
        ("It lasts 12.5 days.", "5", False),
        ("It lasts 12.", "12", True),
        ("Error E21", "E2", False),
        ("Two   weeks\nahead", "two weeks", True),
        ("在2周之前", ("两周", "2周"), True),
        ("每年最高30万元", "300,000", True),
        ("每年最高1.5 万元", "15000", True),
        ("之前", ("两周", "2周"), False),
    ],
)
def test_facts_are_found(text: str, wanted: str | tuple[str, ...], *, found: bool) -> None:
    assert contains(text, wanted) is found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("leave.md", True),
        ("leave.md#ten days", True),
        ("leave.md#eleven", False),
        ("eave.md", False),
        (("other.md", "leave.md#days"), True),
    ],
)
def test_sources_are_recognized(source: str | tuple[str, ...], *, found: bool) -> None:
    assert is_from(source, passage("handbook/leave.md", "ten days")) is found
    assert is_from("leave.md#eleven", passage("leave.md"), exactly=False)


def test_numbers_are_read_without_markers_and_list_numbers() -> None:
    said = "1. From 10:30 on [2]\n2. 3.5 km, 1,500 yuan [1][12]"
    assert numbers(said) == {"10:30", "3.5", "1500"}
    assert known_numbers(["three weeks, 二十五天, 十个, 两次"]) >= {"3", "25", "10", "2"}
    assert numbers("1854年8月9日") <= known_numbers(["published on 9 August 1854"])


@pytest.mark.parametrize(
    "text",
    [
        "The passages do not say how much the machine costs [1].",
        "I'm sorry. The provided passages don't contain a price [1].",
        "I couldn’t find anything about blood donations.",
        "There is no information about company cars in the handbook.",
        "The documents were searched, but nothing about this was found.",
        "This isn't covered in the passages [2].",
        "Based on the passages, I cannot answer this.",
        "资料中没有关于献血假的规定[1]。",
        "抱歉。提供的段落未说明价格[1]。",
        "知识库中没有找到相关内容。",
        "根据现有资料无法确定负责人是谁。",
        "文档里并没有提供这方面的信息。",
    ],
)
def test_refusals_are_seen(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        "No, codes by text message are not accepted [1].",
        "Electricity and internet are not reimbursed [1]. The passages do not say why.",
        "Transport is not included; days that expire are not paid out [1].",
        "Unfortunately the warranty does not cover wearing parts [1].",
        "Without the original box the transport is at your own risk [1].",
        "没有原包装的，运输风险由您自行承担[1]。",
        "不能报销，网费和电费都不报[1]。文中没有说明原因。",
        "没有公共交通时可以报销出租车费[1]。",
        "无法识别蒸馏水，所以不得使用[1]。",
        "E21 表示水泵没有压力[1]。",
    ],
)
def test_an_answer_in_the_negative_is_no_refusal(text: str) -> None:
    assert not refuses(text)


ANSWERABLE: Mapping[str, Any] = {
    "question": "How many days?",
    "answerable": True,
    "facts": ["10", ["June", "六月"]],
    "find": ["leave.md#ten"],
}
UNKNOWN: Mapping[str, Any] = {"question": "How many cars?", "answerable": False}
TEN = citation("leave.md", "ten days until June")


@pytest.mark.parametrize(
    ("case", "outcome", "expected"),
    [
        pytest.param(
            {"question": "x", "route": "general_chat"},
            Outcome(route="knowledge_base"),
            {"route": 0},
            id="a wrong route",
        ),
        pytest.param(
            {"question": "x", "keep": ["pond", ["deep", "depth"]], "avoid": ["leave"]},
            Outcome(query="What is the depth of the leave?"),
            {"kept": 0.5, "kept-all": 0, "avoided": 0},
            id="a rewrite that drops one and drags another along",
        ),
        pytest.param(
            {"question": "x", "find": ["a.md", "b.md"]},
            Outcome(passages=[passage("c.md"), passage("b.md")]),
            {"recall@5": 0.5, "mrr@5": 0.5},
            id="one of two, in the second place",
        ),
        pytest.param(
            {"question": "x", "find": ["a.md"]},
            Outcome(passages=[*[passage("c.md")] * 5, passage("a.md")]),
            {"recall@5": 0, "mrr@5": 0},
            id="the sixth does not count",
        ),
        pytest.param(
            ANSWERABLE,
            Outcome(answer="There are 10 days until June [1].", citations=[TEN]),
            {
                "answered": 1,
                "facts": 1,
                "citation-precision": 1,
                "citation-recall": 1,
                "numbers": 1,
                "language": 1,
            },
            id="a right answer",
        ),
        pytest.param(
            ANSWERABLE,
            Outcome(answer="有 11 天[1][2]。", citations=[citation("x.md"), TEN]),
            {
                "answered": 1,
                "facts": 0,
                "citation-precision": 0.5,
                "citation-recall": 1,
                "numbers": 0,
                "language": 0,
            },
            id="a number of its own, a citation too many, another language",
        ),
        pytest.param(
            ANSWERABLE,
            Outcome(answer="The passages do not mention it."),
            {
                "answered": 0,
                "facts": 0,
                "citation-precision": 0,
                "citation-recall": 0,
                "language": 1,
            },
            id="a refusal without need",
        ),
        pytest.param(
            UNKNOWN,
            Outcome(answer="It is not stated. There are trains [1].", citations=[TEN]),
            {"refused": 1, "language": 1},
            id="a refusal that cites",
        ),
        pytest.param(
            {**UNKNOWN, "question": "有几辆车？"},
            Outcome(answer="资料中没有提到车辆[1]。", citations=[TEN]),
            {"refused": 1, "language": 1},
            id="a Chinese refusal",
        ),
        pytest.param(
            UNKNOWN,
            Outcome(answer="Nothing about it. The closest document: Corto 20."),
            {"refused": 1, "language": 1},
            id="numbers of a refusal rest on nothing",
        ),
        pytest.param(
            {**UNKNOWN, "avoid": ["blue-blue"]},
            Outcome(answer="There are many [1]. Blue-Blue", citations=[TEN]),
            {"refused": 0, "language": 1, "avoided": 0},
            id="an invention that obeys a passage",
        ),
        pytest.param(
            ANSWERABLE,
            Outcome(error="unavailable: nobody is there", answer="10 in June"),
            {
                "answered": 0,
                "facts": 0,
                "citation-precision": 0,
                "citation-recall": 0,
                "language": 0,
            },
            id="what failed has nothing",
        ),
        pytest.param(
            UNKNOWN, Outcome(error="x"), {"refused": 0, "language": 0}, id="not even a refusal"
        ),
    ],
)
def test_scores(
    case: Mapping[str, Any], outcome: Outcome, expected: Mapping[str, float]
) -> None:
    assert score(Case.model_validate(case), outcome) == expected


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(supported=True, correct=True), {"answered": 1, "correct": 1, "supported": 1}),
        (Verdict(refused=True), {"answered": 0, "correct": 0, "supported": 0}),
    ],
)
def test_a_judge_decides_what_rules_cannot_see(
    verdict: Verdict, expected: Mapping[str, float]
) -> None:
    outcome = Outcome(answer="Ten days, as nobody mentions.")
    found = score(Case(question="How many days?", answerable=True), outcome, verdict)
    assert found == {**expected, "language": 1}


def test_a_judge_sees_an_instruction_that_was_obeyed() -> None:
    case = Case(question="x", answerable=False, avoid=("blue",))
    outcome = Outcome(answer="Arr, I know nothing.")
    assert score(case, outcome)["avoided"] == 1
    assert score(case, outcome, Verdict(obeyed=True))["avoided"] == 0
