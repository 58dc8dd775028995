"""Sentences, words, stems and the language of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatbot.stems import stem
from chatbot.terms import MOST_TERMS, coverage, terms
from chatbot.text import language, sentences, tokens, without_addresses, words
from tests.stopwatch import Stopwatch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Who wrote Walden?", "en", id="English"),
        pytest.param("瓦尔登湖是谁写的", "zh", id="Chinese"),
        pytest.param("E21是什么意思", "zh", id="Chinese with a code"),
        pytest.param("How do I say 你好 to the whole team?", "en", id="English with Chinese"),
        pytest.param("", "en", id="nothing"),
        pytest.param("12345", "en", id="numbers only"),
    ],
)
def test_language(text: str, expected: str) -> None:
    assert language(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("One. Two! Three?", ["One.", "Two!", "Three?"], id="English"),
        pytest.param("一。二！三？", ["一。", "二！", "三？"], id="Chinese without blanks"),
        pytest.param(
            "他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"], id="closing quote"
        ),
        pytest.param(
            "It costs 2.50 yuan. Fine.", ["It costs 2.50 yuan.", "Fine."], id="decimal"
        ),
        pytest.param("Cf. Dr. Thoreau. End.", ["Cf. Dr. Thoreau.", "End."], id="abbreviations"),
        pytest.param("a\n\nb", ["a", "b"], id="line breaks"),
        pytest.param("等等……好", ["等等……", "好"], id="ellipsis"),
        pytest.param(" \n ", [], id="white space"),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        pytest.param("write writes wrote written writing", id="irregular verb"),
        pytest.param("policy policies", id="plural in -ies"),
        pytest.param("reimburse reimbursed reimbursing reimbursement", id="derived noun"),
        pytest.param("promote promoted promotion", id="noun in -ion"),
        pytest.param("stop stopped stopping", id="doubled consonant"),
        pytest.param("code codes coded coding", id="dropped e"),
        pytest.param("deep depth", id="irregular noun"),
        pytest.param("insure insured insurance", id="noun in -ance"),
        pytest.param("box boxes", id="plural in -xes"),
        pytest.param("taxi taxis", id="plural of a word in -i"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("not", "note", id="a dropped e would confuse them"),
        pytest.param("man", "many", id="a dropped y would confuse them"),
        pytest.param("bus", "buy", id="a final s that is no plural"),
    ],
)
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("E-21", "e21", id="code with a hyphen"),
        pytest.param("Ｅ２１", "e21", id="full-width code"),
        pytest.param("RD-200", "rd200", id="model number"),
        pytest.param("S-104.", "s104", id="code before a full stop"),
        pytest.param("Café", "cafe", id="accent"),
        pytest.param("Cafe\u0301", "cafe", id="accent as a mark of its own"),
        pytest.param("Walden’s", "walden", id="possessive"),
        pytest.param("3.5", "3.5", id="decimal"),
        pytest.param("瓦尔登湖", "瓦尔登湖", id="Chinese name"),
        pytest.param("瓦尔登湖", "湖", id="character of a Chinese name"),
        pytest.param("年假", "年假", id="Chinese word that the dictionary lacks"),
        pytest.param("カメラ", "カメ", id="Japanese as pairs"),
    ],
)
def test_text_is_found_by(text: str, expected: str) -> None:
    assert expected in tokens(text)


@pytest.mark.parametrize(
    ("heavy", "light", "question"),
    [
        pytest.param("walden", "who", "Who wrote Walden?", id="name and question word"),
        pytest.param("瓦尔登湖", "谁", "瓦尔登湖是谁写的", id="Chinese name and pronoun"),
        pytest.param("风景", "怎么样", "那它的风景怎么样", id="Chinese noun and phrase"),
        pytest.param("e21", "mean", "What does E21 mean?", id="code and verb"),
        pytest.param("descal", "how", "How do I descale?", id="rare verb and question word"),
        pytest.param("password", "must", "How long must a password be?", id="auxiliary"),
        pytest.param("保修期", "多久", "保修期多久", id="Chinese noun and question word"),
        pytest.param("泵", "怎么", "泵怎么修", id="character tagged as part of words"),
        pytest.param("垚", "什么", "垚是什么", id="character that the dictionary lacks"),
    ],
)
def test_a_word_that_tells_more_weighs_more(heavy: str, light: str, question: str) -> None:
    weights = {term.text: term.weight for term in terms(question)}

    assert weights[heavy] > 2 * weights[light]


def test_coverage_is_the_weight_of_the_words_that_occur() -> None:
    question = terms("How deep is Walden Pond?")

    assert coverage(question, tokens("Walden Pond is 102 feet deep")) > 0.8
    assert coverage(question, tokens("Walden")) == pytest.approx(
        coverage(question, tokens("Pond")), abs=0.1
    )
    assert coverage(question, tokens("The machine leaks")) < 0.1
    assert coverage([], tokens("anything")) == 0


@pytest.mark.parametrize(
    ("question", "word"),
    [
        pytest.param("能请几天假", "能请", id="auxiliary and verb"),
        pytest.param("假要提前申请", "假要", id="noun and auxiliary"),
    ],
)
def test_a_word_that_holds_together_makes_no_new_one(question: str, word: str) -> None:
    assert word not in {term.text for term in terms(question)}


def test_a_greeting_is_no_part_of_a_question() -> None:
    assert terms("Hello, could you tell me who wrote Walden?") == terms("who wrote Walden?")
    assert terms("你好，请问瓦尔登湖是谁写的") == terms("瓦尔登湖是谁写的")


def test_a_longer_word_is_partly_present_in_its_parts() -> None:
    (term,) = terms("停车位")

    assert 0 < term.presence(tokens("地下车位")) < term.presence(tokens("停车位"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("员工每年有多少天带薪年假？" * 3900, id="Chinese"),
        pytest.param("a " * 25_000, id="short words"),
        pytest.param("a" * 50_000, id="one word"),
        pytest.param("字" * 50_000, id="one character"),
        pytest.param("a.b-" * 12_500, id="one chain of words"),
        pytest.param(". " * 25_000, id="full stops"),
        pytest.param("{{%$" * 12_500, id="template syntax"),
        pytest.param("\x00\x1b\u202e" * 16_000, id="control characters"),
        pytest.param("カ" * 50_000, id="script without blanks"),
    ],
)
def test_fifty_thousand_characters_take_no_time(text: str) -> None:
    stopwatch = Stopwatch()

    tokens(text)
    sentences(text)
    assert len(terms(text)) <= MOST_TERMS
    assert stopwatch.seconds() < 3


@given(st.text(max_size=300))
def test_any_text_can_be_taken_apart(text: str) -> None:
    assert all(sentence.strip() for sentence in sentences(text))
    assert all(word.text for word in words(text))
    for term in terms(text):
        assert term.weight >= 0
        assert 0 <= term.presence(frozenset(tokens(text))) <= 1


@given(st.text(alphabet="天地玄黄abcXYZ 019.-'é，。\n", max_size=120))
def test_a_text_covers_itself(text: str) -> None:
    question = terms(text)

    if sum(term.weight for term in question) > 0:
        assert coverage(question, frozenset(tokens(text))) > 0.4


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("ask http://gpu-1:8000/v1, please", "ask [address] please", id="URL"),
        pytest.param(
            "无法连接https://知识.example/路，请重试。",
            "无法连接[address]，请重试。",
            id="URL in Chinese",
        ),
        pytest.param(
            "at 10.0.0.7:9200 or es01:9200.", "at [address] or [address].", id="ports"
        ),
        pytest.param("[::1]:80 and localhost", "[address] and [address]", id="IPv6"),
        pytest.param("vllm.internal:80 broke", "[address] broke", id="host of a domain"),
        pytest.param(
            "HTTPConnectionPool(host='es01', port=9200)",
            "HTTPConnectionPool(host='[address]', port=9200)",
            id="urllib3",
        ),
        pytest.param("mongodb://ann:pw@a,b/db fails", "[address] fails", id="MongoDB"),
    ],
)
def test_addresses_are_taken_out(text: str, left: str) -> None:
    assert without_addresses(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "gpt-4.1 and qwen2.5:32b and Qwen/Qwen3:8b are not found (404)",
        "max_tokens:4096 is more than 2048; 16:9 at 12:30",
        "leave.md, 见 请假.md：第 2 页 [ID:0] [a:b]",
    ],
)
def test_what_is_no_address_stays(text: str) -> None:
    assert without_addresses(text) == text
