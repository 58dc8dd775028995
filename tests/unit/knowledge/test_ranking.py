import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.domain import Assistant
from chatbot.knowledge.ranking import mentioned, rank

ASSISTANTS = [
    Assistant(id=str(number), name=name, description=description)
    for number, (name, description) in enumerate(
        [
            ("员工手册", "公司制度、假期与福利"),
            ("瓦尔登湖", "梭罗在湖边的生活"),
            ("X200 manual", "Pump: installation, filter, warranty"),
            ("HR", "Hiring, leave policies, benefits"),
            ("手册", ""),
            ("法务", "合同与合规"),
        ]
    )
]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("年假和福利有哪些？", "员工手册"),
        ("瓦尔登湖的风景怎么样", "瓦尔登湖"),
        ("梭罗住在哪里", "瓦尔登湖"),
        ("How long is the warranty?", "X200 manual"),
        ("Which benefit do new hires get?", "HR"),
        ("合同要找谁审核", "法务"),
    ],
)
def test_the_closest_assistant_comes_first(query: str, best: str) -> None:
    assert rank(query, ASSISTANTS, 1)[0].name == best


def test_without_anything_in_common_the_order_stays() -> None:
    assert rank("quantum chess", ASSISTANTS, 3) == ASSISTANTS[:3]


def test_the_right_one_of_five_hundred_is_among_the_first() -> None:
    crowd = [
        Assistant(
            id=f"c{number}", name=f"产品 {number}", description=f"第 {number} 号产品的手册"
        )
        for number in range(500)
    ]
    assert ASSISTANTS[1] in rank("瓦尔登湖的风景", [*crowd, *ASSISTANTS], 10)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        pytest.param("员工手册里年假怎么写？", ["员工手册"], id="longest name, not its part"),
        pytest.param("x200 Manual: 保修多久", ["X200 manual"], id="other case"),
        pytest.param("Ｘ２００ manual?", ["X200 manual"], id="wide letters"),
        pytest.param(
            "比较《瓦尔登湖》和员工手册", ["瓦尔登湖", "员工手册"], id="in their order"
        ),
        pytest.param("ask HR about it", ["HR"], id="whole word"),
        pytest.param("three chrome hrs", [], id="inside words"),
        pytest.param("问HR怎么办", ["HR"], id="between Chinese characters"),
        pytest.param("看手册", ["手册"], id="short name alone"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_a_named_assistant_is_noticed(question: str, names: list[str]) -> None:
    assert [assistant.name for assistant in mentioned(question, ASSISTANTS)] == names


def test_a_name_of_one_character_is_never_meant() -> None:
    assert mentioned("a plan", [Assistant(id="1", name="a"), Assistant(id="2", name="")]) == []


@given(st.text(), st.lists(st.text(), max_size=5), st.integers(0, 6))
def test_any_text_can_be_ranked(query: str, names: list[str], limit: int) -> None:
    assistants = [
        Assistant(id=str(number), name=name, description=query[::-1])
        for number, name in enumerate(names)
    ]
    ranked = rank(query, assistants, limit)
    assert len(ranked) == min(limit, len(assistants))
    assert set(mentioned(query, assistants)) <= set(assistants)
