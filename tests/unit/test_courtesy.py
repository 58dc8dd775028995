"""What remains of a message without greetings, thanks and the words of a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.courtesy import LONGEST, without_courtesy
from tests.stopwatch import Stopwatch

PIECES = ["great", "thanks", "for", "you", "ok", "x", "好的", "谢谢", "嗯", ",", "，"]


@pytest.mark.parametrize(
    ("message", "rest"),
    [
        pytest.param("Hello, who are you?", "who are you?", id="greeting"),
        pytest.param("hello who are you", "who are you", id="no comma"),
        pytest.param("你好，你是谁？", "你是谁？", id="greeting, Chinese"),
        pytest.param("你好请问试用期多久", "试用期多久", id="no comma, Chinese"),
        pytest.param("thanks, bye", "", id="nothing else"),
        pytest.param("太感谢了，明天见！", "", id="nothing else, Chinese"),
        pytest.param("Thank you so much for your help!", "", id="thanks for something"),
        pytest.param(
            "Thanks! And after that?", "And after that?", id="thanks, then a question"
        ),
        pytest.param("谢谢！那E01呢？", "那E01呢？", id="thanks, then a question, Chinese"),
        pytest.param("Could you tell me who wrote it?", "who wrote it?", id="request"),
        pytest.param(
            "Hi! I would like to know how much it is.", "how much it is.", id="wish to know"
        ),
        pytest.param("嗨，能帮我看看E01怎么办吗", "E01怎么办吗", id="request, Chinese"),
        pytest.param("您好！我想知道补贴是多少", "补贴是多少", id="wish to know, Chinese"),
        pytest.param(
            "你知道《瓦尔登湖》是谁写的吗", "《瓦尔登湖》是谁写的吗", id="a title follows"
        ),
        pytest.param("Can you help me?", "Can you help me?", id="a request for nothing"),
        pytest.param("Do you like coffee?", "Do you like coffee?", id="asked of the chatbot"),
        pytest.param("What is a thank you note?", "What is a thank you note?", id="subject"),
        pytest.param("Hello world program", "Hello world program", id="begins a name"),
        pytest.param("感谢信怎么写", "感谢信怎么写", id="begins a word, Chinese"),
        pytest.param("你好像很忙", "你好像很忙", id="begins another phrase, Chinese"),
        pytest.param("行李寄存在哪里", "行李寄存在哪里", id="begins a noun, Chinese"),
        pytest.param("No smoking", "No smoking", id="no comma after no"),
        pytest.param("", "", id="nothing"),
        pytest.param("?!", "", id="only marks"),
    ],
)
def test_what_remains(message: str, rest: str) -> None:
    assert without_courtesy(message) == rest


def test_a_long_message_is_left_as_it_is() -> None:
    message = "Hello, " + "word " * LONGEST
    assert without_courtesy(message) == message


@given(st.lists(st.sampled_from(PIECES), max_size=200))
def test_no_message_takes_long(parts: list[str]) -> None:
    stopwatch = Stopwatch()
    for separator in ("", " "):
        without_courtesy(separator.join(parts))
    assert stopwatch.seconds() < 1
