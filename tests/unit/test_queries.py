import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.queries import differ_much, is_chinese, usable_rewrite


@pytest.mark.parametrize(
    ("question", "rewrite", "expected"),
    [
        pytest.param(
            "那它的风景怎么样", "瓦尔登湖的风景怎么样？", "瓦尔登湖的风景怎么样？", id="pronoun"
        ),
        pytest.param(
            "And how long is it?",
            "How long is the warranty of the pump?",
            "How long is the warranty of the pump?",
            id="English pronoun",
        ),
        pytest.param("它呢", "“瓦尔登湖呢？”", "瓦尔登湖呢？", id="quotation marks go"),
        pytest.param(
            "E21?", "水泵显示 E21 是什么意思？", "水泵显示 E21 是什么意思？", id="a bare code"
        ),
        pytest.param("那它的风景怎么样", "", "", id="nothing"),
        pytest.param("那它的风景怎么样", " \n\t", "", id="white space"),
        pytest.param("那它的风景怎么样", "……？", "", id="punctuation alone"),
        pytest.param("那它的风景怎么样", "What is Walden's scenery like?", "", id="translated"),
        pytest.param(
            "How is its scenery?", "瓦尔登湖的风景怎么样？", "", id="translated to Chinese"
        ),
        pytest.param("它呢", "瓦尔登湖" * 60, "", id="far too long"),
        pytest.param("它呢", "第一行\n第二行", "", id="several lines"),
        pytest.param("E21 怎么办", "水泵报警怎么办", "", id="lost the code"),
        pytest.param("超过 30 天呢", "报销超过期限怎么办", "", id="lost the number"),
        pytest.param(
            "超过 30 天呢", "报销超过 30 天怎么办", "报销超过 30 天怎么办", id="kept the number"
        ),
        pytest.param(
            "超过３０天呢", "报销超过 30 天怎么办", "报销超过 30 天怎么办", id="wide digits"
        ),
        pytest.param("那三天以上呢", "病假需要证明吗", "", id="lost a Chinese number"),
        pytest.param(
            "那第十二章呢",
            "瓦尔登湖第12章讲什么",
            "瓦尔登湖第12章讲什么",
            id="number in digits",
        ),
        pytest.param("那两个月的呢", "2个月的试用期", "2个月的试用期", id="两 is two"),
        pytest.param("那一天呢", "当天可以请假吗", "当天可以请假吗", id="one counts nothing"),
        pytest.param(
            "1,000 yuan?", "Who approves 1000 yuan?", "Who approves 1000 yuan?", id="thousands"
        ),
        pytest.param("E-21呢", "E21是什么意思", "E21是什么意思", id="code without its hyphen"),
        pytest.param("《瓦尔登湖》呢", "这本书是谁写的", "", id="lost the title"),
        pytest.param(
            "《瓦尔登湖》呢", "瓦尔登湖是谁写的", "瓦尔登湖是谁写的", id="kept the title"
        ),
        pytest.param("那 Alice 呢", "谁负责报销", "", id="lost the name"),
        pytest.param("那Alice呢", "alice 的年假", "alice 的年假", id="kept the name"),
        pytest.param("And Thoreau's cabin?", "How large is the cabin?", "", id="lost a person"),
        pytest.param("Does HR know?", "Does the company know?", "", id="lost an acronym"),
        pytest.param(
            "Does HR know?",
            "Does HR know of sick leave?",
            "Does HR know of sick leave?",
            id="kept an acronym",
        ),
        pytest.param(
            "I think I'd like more. Why?",
            "Why more leave?",
            "Why more leave?",
            id="capitals that are no names",
        ),
        pytest.param(
            "WHAT ABOUT IT?", "What about leave?", "What about leave?", id="capitals alone"
        ),
        pytest.param("它呢", "瓦尔登湖\x00呢", "瓦尔登湖呢", id="control characters go"),
    ],
)
def test_rewrite(question: str, rewrite: str, expected: str) -> None:
    assert usable_rewrite(question, rewrite) == expected


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        pytest.param("瓦尔登湖是谁写的", True, id="Chinese"),
        pytest.param("Walden 的作者是谁", True, id="Chinese with a name"),
        pytest.param("Who wrote Walden?", False, id="English"),
        pytest.param(
            "What does 瓦尔登湖 mean in this book about ponds?", False, id="a quoted title"
        ),
        pytest.param("", False, id="nothing"),
        pytest.param("12345", False, id="numbers"),
    ],
)
def test_language(text: str, chinese: bool) -> None:
    assert is_chinese(text) is chinese


@pytest.mark.parametrize(
    ("question", "query", "differ"),
    [
        pytest.param("那它的风景怎么样", "瓦尔登湖的风景怎么样", False, id="put in context"),
        pytest.param("And its scenery?", "What is the scenery of Walden?", False, id="English"),
        pytest.param("湖水呢", "水泵的保修期多长", True, id="nothing is left of it"),
        pytest.param("它呢", "水泵的保修期多长", False, id="it says nothing by itself"),
        pytest.param("那这是为什么呢？", "水泵漏水的原因", False, id="a Chinese question word"),
        pytest.param("And what about it?", "warranty of the pump", False, id="function words"),
        pytest.param("Does the pump leak?", "boiler descaling interval", True, id="elsewhere"),
        pytest.param("？", "水泵", False, id="no words"),
    ],
)
def test_a_query_may_differ_much(question: str, query: str, differ: bool) -> None:
    assert differ_much(query, question) is differ


@given(st.text(), st.text())
def test_a_rewrite_is_one_clean_line_or_nothing(question: str, rewrite: str) -> None:
    result = usable_rewrite(question, rewrite)
    assert result == result.strip()
    assert "\n" not in result
    assert set(result) <= set(rewrite)
    assert not any(unicodedata.category(character) == "Cc" for character in result)
