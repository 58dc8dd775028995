"""What the wording of a message tells, in Chinese and in English."""

import pytest

from chatbot.models.extractive_wording import (
    addresses,
    asks,
    means_chatbot,
    names_subject,
    refers,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("How long is probation", True, id="interrogative"),
        pytest.param("leave?", True, id="question mark"),
        pytest.param("And when does it end", True, id="after a conjunction"),
        pytest.param("试用期多久", True, id="Chinese interrogative"),
        pytest.param("可以带狗吗", True, id="Chinese particle"),
        pytest.param("面积呢？", True, id="Chinese particle and mark"),
        pytest.param("I see", False, id="statement"),
        pytest.param("thanks a lot", False, id="thanks"),
        pytest.param("收到", False, id="Chinese statement"),
        pytest.param("Hello, how long is it", True, id="after a greeting"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_asks(text: str, *, expected: bool) -> None:
    assert asks(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("When must it be replaced?", True, id="pronoun"),
        pytest.param("What about Shanghai?", True, id="what about"),
        pytest.param("And in the fifth year?", True, id="conjunction"),
        pytest.param("For how long?", True, id="no subject"),
        pytest.param("Why?", True, id="one word"),
        pytest.param("那它的风景怎么样", True, id="Chinese pronoun"),
        pytest.param("上海呢？", True, id="Chinese particle"),
        pytest.param("为什么？", True, id="Chinese, one word"),
        pytest.param("What is the capital of France?", False, id="stands alone"),
        pytest.param("How much is the meal allowance?", False, id="stands alone, amount"),
        pytest.param("其他城市的住宿标准是多少", False, id="Chinese, stands alone"),
        pytest.param("thanks", False, id="thanks"),
    ],
)
def test_refers(text: str, *, expected: bool) -> None:
    assert refers(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("How old are you?", True, id="English"),
        pytest.param("你是机器人吗", True, id="Chinese"),
        pytest.param("你们的年假有几天", False, id="the company"),
        pytest.param("How old is the youth hostel?", False, id="inside a word"),
        pytest.param("Could you tell me how old it is?", False, id="only in the request"),
        pytest.param("你知道年假有几天吗", False, id="only in the request, Chinese"),
    ],
)
def test_addresses(text: str, *, expected: bool) -> None:
    assert addresses(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Who wrote Walden?", True, id="English"),
        pytest.param("年假有几天", True, id="Chinese"),
        pytest.param("How is it?", False, id="only grammar"),
        pytest.param("好的", False, id="Chinese, only grammar"),
        pytest.param("Good morning, how are you?", False, id="only in the greeting"),
    ],
)
def test_names_subject(text: str, *, expected: bool) -> None:
    assert names_subject(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Hello, who are you?", True, id="who"),
        pytest.param("Are you a robot?", True, id="what kind"),
        pytest.param("Which language model are you?", True, id="at the end"),
        pytest.param("你用的是什么模型？", True, id="Chinese"),
        pytest.param("Are you open on Sundays?", False, id="the company"),
        pytest.param("你们几点开门", False, id="the company, Chinese"),
        pytest.param("Do you know who invented paper?", False, id="only in the request"),
    ],
)
def test_means_chatbot(text: str, *, expected: bool) -> None:
    assert means_chatbot(text) is expected
