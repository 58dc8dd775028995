"""Token counts for real texts, without the network."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from chatbot.errors import ModelError
from chatbot.models.context_window import ContextWindow, window_of
from chatbot.models.tokens import CautiousCounter, TokenCounter, estimate, tokenizer_for

CHINESE = "瓦尔登湖位于美国马萨诸塞州的康科德镇，梭罗在湖边的小木屋里住了两年多。" * 5
ENGLISH = "Thoreau lived for two years in a small house that he built beside the pond. " * 5
CODE = Path(__file__).read_text()


@pytest.mark.parametrize(
    ("model", "tokenizer"),
    [
        pytest.param("qwen-plus", "qwen", id="DashScope"),
        pytest.param("Qwen/Qwen2.5-7B-Instruct", "qwen", id="vLLM"),
        pytest.param("qwq-32b", "qwen", id="QwQ"),
        pytest.param("qwen3.5-27b", "qwen3.5", id="a later Qwen"),
        pytest.param("gpt-4.1-mini", "o200k_base", id="GPT"),
        pytest.param("o3", "o200k_base", id="a reasoning GPT"),
        pytest.param("gpt-4-0613", "cl100k_base", id="an old GPT"),
        pytest.param("openai/gpt-oss-20b", "o200k_harmony", id="an open GPT"),
        pytest.param("llama3.1:8b", None, id="another"),
        pytest.param("foo-o1", None, id="a name that ends like one"),
    ],
)
def test_each_model_has_its_tokenizer(model: str, tokenizer: str | None) -> None:
    assert tokenizer_for(model) == tokenizer


@pytest.mark.parametrize(
    ("model", "text", "tokens"),
    [
        pytest.param("qwen-plus", CHINESE, 145, id="Qwen, Chinese"),
        pytest.param("qwen-plus", ENGLISH, 91, id="Qwen, English"),
        pytest.param("gpt-4o", CHINESE, 170, id="GPT, Chinese"),
        pytest.param("gpt-4o", ENGLISH, 91, id="GPT, English"),
        pytest.param("gpt-4o", "", 0, id="nothing"),
        pytest.param("qwen-plus", "a\ud800b", 3, id="half a character"),
    ],
)
async def test_counts_are_exact(model: str, text: str, tokens: int) -> None:
    counter = TokenCounter(model)
    await counter.load()
    assert counter.count(text) == tokens
    assert counter.count(text) == tokens  # from the cache


@pytest.mark.parametrize("text", [CHINESE, ENGLISH, CODE], ids=["Chinese", "English", "code"])
@pytest.mark.parametrize("model", ["qwen-plus", "gpt-4o", "qwen3.5-27b"])
async def test_estimates_are_on_the_safe_side(model: str, text: str) -> None:
    counter = TokenCounter(model)
    await counter.load()
    exact = counter.count(text)
    assert exact <= estimate(text) <= exact * 1.9
    assert TokenCounter(model).count(text) == estimate(text)


async def test_unknown_models_get_a_margin() -> None:
    known, unknown = TokenCounter("qwen-plus"), TokenCounter("llama3")
    await known.load()
    await unknown.load()
    assert unknown.count(ENGLISH) == round(known.count(ENGLISH) * 1.2)


@pytest.mark.parametrize("loaded", [True, False], ids=["loaded", "estimated"])
@pytest.mark.parametrize("model", ["llama3", "qwen-plus", "gpt-4o"])
async def test_reported_usage_corrects_the_counts(model: str, *, loaded: bool) -> None:
    counter = TokenCounter(model)
    if loaded:
        await counter.load()
    wanted = counter.count(ENGLISH) * 1.5
    for _ in range(30):
        counter.correct(counted=counter.count(ENGLISH), reported=round(wanted))
    assert abs(counter.count(ENGLISH) - wanted) <= 2
    counter.correct(counted=10, reported=9999)
    assert abs(counter.count(ENGLISH) - wanted) <= 2


@pytest.mark.parametrize(
    ("reported", "lowest", "highest"),
    [
        pytest.param(1, 0.5, 0.95, id="far too little"),
        pytest.param(10**6, 3, 4, id="far too much"),
    ],
)
@pytest.mark.parametrize("model", ["llama3", "qwen-plus"])
async def test_absurd_usage_changes_the_counts_within_bounds(
    model: str, reported: int, lowest: float, highest: float
) -> None:
    counter = TokenCounter(model)
    await counter.load()
    before = counter.count(ENGLISH)
    for _ in range(50):
        counter.correct(counted=counter.count(ENGLISH), reported=reported)
    assert lowest <= counter.count(ENGLISH) / before <= highest


async def test_what_was_learned_of_estimates_is_not_taken_for_counts() -> None:
    counter = TokenCounter("qwen-plus")
    counter.correct(counted=counter.count(ENGLISH), reported=900)
    await counter.load()
    assert counter.count(ENGLISH) == 91


async def test_several_models_are_counted_like_the_one_that_counts_the_most() -> None:
    both = CautiousCounter(["qwen-plus", "gpt-4o"])
    await both.load()
    assert both.is_loaded
    assert both.count(CHINESE) == 170  # GPT's; Qwen has 145
    both.of("qwen-plus").correct(counted=145, reported=290)
    both.of("qwen-plus").correct(counted=145, reported=290)
    assert both.count(CHINESE) == both.of("qwen-plus").count(CHINESE) > 170
    message = HumanMessage(CHINESE)
    assert both.count_messages([message]) > both.count_message(message) > both.count(CHINESE)


async def test_messages_count_their_frames_calls_images_and_tools() -> None:
    counter = TokenCounter("gpt-4o")
    await counter.load()
    hello = counter.count_message(HumanMessage("hello"))
    assert hello == counter.count("hello") + 4
    call = {"name": "find", "args": {"q": "hello"}, "id": "1"}
    assert counter.count_message(AIMessage("hello", tool_calls=[call])) > hello + 4
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    assert counter.count_message(HumanMessage([image])) > 1000
    alone = counter.count_messages([HumanMessage("hello")])
    assert counter.count_messages([HumanMessage("hello")], [{"name": "find"}]) > alone


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_counted(text: str) -> None:
    assert 0 <= estimate(text) <= len(text)


def window(tokens: int) -> ContextWindow:
    return ContextWindow(counter=TokenCounter("gpt-4o"), tokens=tokens, reserved=tokens // 4)


WORDS = "one two three four five six seven eight nine ten "  # 10 tokens
FIXED = [SystemMessage(WORDS * 5), HumanMessage(WORDS * 5)]
TURNS = [[HumanMessage(WORDS * 4), AIMessage(WORDS * 5)] for _ in range(5)]
PASSAGES = [WORDS * 10] * 4


@pytest.mark.parametrize(
    ("tokens", "passages", "turns"),
    [
        pytest.param(4000, 4, 5, id="everything"),
        pytest.param(1000, 4, 2, id="turns leave first"),
        pytest.param(600, 3, 0, id="then passages"),
        pytest.param(160, 0, 0, id="the question alone"),
    ],
)
async def test_passages_fit_before_turns(tokens: int, passages: int, turns: int) -> None:
    fitted = await window(tokens).fit(FIXED, passages=PASSAGES, turns=TURNS)
    assert (fitted.passages, fitted.turns) == (passages, turns)
    assert fitted.tokens <= window(tokens).budget


async def test_a_question_that_is_too_long_is_refused_with_the_numbers() -> None:
    with pytest.raises(ModelError, match=r"about 113 tokens.*can read 75") as caught:
        await window(100).fit(FIXED)
    assert caught.value.kind == "context_too_long"


async def test_a_smaller_window_keeps_less() -> None:
    fitted = await window(1000).smaller().fit(FIXED, passages=PASSAGES, turns=TURNS)
    assert (fitted.passages, fitted.turns) == (4, 0)


@pytest.mark.parametrize(
    ("sent", "budget"),
    [
        pytest.param(None, 525, id="of the whole window"),
        pytest.param(400, 280, id="of what was sent"),
        pytest.param(5000, 525, id="of what was counted wrong"),
    ],
)
def test_a_smaller_window_is_smaller_than_what_was_too_long(
    sent: int | None, budget: int
) -> None:
    assert window(1000).smaller(sent).budget == budget


@pytest.mark.parametrize(
    ("wished", "budget"),
    [
        pytest.param(400, 600, id="so many"),
        pytest.param(5000, 500, id="half at most"),
        pytest.param(None, 750, id="none"),
        pytest.param("400", 750, id="no number"),
        pytest.param(0, 750, id="nothing"),
    ],
)
def test_what_the_caller_wants_for_the_answer_is_kept_free(wished: object, budget: int) -> None:
    assert window(1000).reserving(wished).budget == budget


@pytest.mark.parametrize(
    ("tokens", "passages", "results"),
    [
        pytest.param(4000, PASSAGES, [None, None, None], id="everything"),
        pytest.param(600, [], [0, "cut", None], id="the newest first"),
        pytest.param(600, PASSAGES, [0, 0, "cut"], id="half of it beside passages"),
        pytest.param(170, [], [0, 0, 0], id="nothing"),
    ],
)
async def test_results_of_tools_are_cut_from_the_oldest_on(
    tokens: int, passages: list[str], results: list[object]
) -> None:
    given = [WORDS * 20] * 3
    fitted = await window(tokens).fit(FIXED, results=given, passages=passages)
    assert fitted.tokens <= window(tokens).budget
    for kept, expected in zip(fitted.results, results, strict=True):
        whole = len(given[0])
        assert kept == (whole if expected is None else expected) or 0 < kept < whole
    if passages and tokens < 4000:
        assert fitted.passages


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        pytest.param("qwen-plus", 131_072, id="Qwen"),
        pytest.param("gpt-4o-mini", 128_000, id="GPT"),
        pytest.param("gpt-4", 8_192, id="an old GPT"),
        pytest.param("some-model", 32_768, id="another"),
    ],
)
def test_the_window_of_a_model(model: str, tokens: int) -> None:
    assert window_of(model) == tokens
