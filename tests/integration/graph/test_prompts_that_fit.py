import base64
from typing import Any

import pytest

from chatbot.domain import Passage
from chatbot.errors import InputError, KnowledgeBaseError, ModelError
from chatbot.models.context_window import ContextWindow
from chatbot.models.tokens import TokenCounter
from tests.integration.graph.conftest import Bench
from tests.ports import HANDBOOK, Call, Said, passage

CHAT = Said(call=Call("general_chat"))
LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer"}},
    "required": ["days"],
    "additionalProperties": False,
}
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()


def window(tokens: int) -> ContextWindow:
    return ContextWindow(counter=TokenCounter("some-model"), tokens=tokens, reserved=100)


def long_passages() -> list[Passage]:
    return [passage(f"benefits {number} " + "word " * 300) for number in range(4)]


async def test_passages_go_first_then_the_newest_turns(bench: Bench) -> None:
    bot = bench.bot_with(window=window(3_000))
    for number in range(6):
        bench.script(CHAT, Said([f"answer {number} " + "word " * 200]))
        await bot.ask(f"question {number}", session_id="s")
    bench.knowledge.passages = {HANDBOOK.name: long_passages()}
    bench.script(LOOK_UP, Said(["benefits"]), Said(["fine [1] [4]"]))
    answer = await bot.ask("benefits", session_id="s")
    [*history, asked] = bench.model.prompts[-1][1:]
    assert len(history) < 12
    assert not history or str(history[-2].content) == "question 5"
    turn = (await bot.turns("s"))[-1]
    assert turn.record["cut"]["turns"] == 6 - len(history) // 2
    assert "benefits 0" in str(asked.content)
    kept = 4 - turn.record["cut"]["passages"]
    assert f"[{kept + 1}]" not in answer.text


async def test_a_question_that_is_too_long_is_refused_with_the_numbers(bench: Bench) -> None:
    bot = bench.bot_with(window=window(3_000))
    bench.script(CHAT)
    with pytest.raises(ModelError, match=r"too long.*[\d,]+ tokens.*2,900") as raised:
        await bot.ask("很长" * 5_000)
    assert raised.value.kind == "context_too_long"


async def test_an_endpoint_that_says_too_long_is_asked_for_less(bench: Bench) -> None:
    bot = bench.bot_with(window=window(3_000))
    for number in range(4):
        bench.script(CHAT, Said(["word " * 500]))
        await bot.ask(f"question {number}", session_id="s")
    refused = Said(error=ModelError("context_too_long", "too long"))
    bench.script(CHAT, refused, Said(["shorter"]))
    assert (await bot.ask("next", session_id="s")).text == "shorter"
    assert len(bench.model.prompts[-1]) < len(bench.model.prompts[-2])
    bench.script(CHAT, refused, refused)
    with pytest.raises(ModelError, match="too long"):
        await bot.ask("next", session_id="s")


@pytest.mark.parametrize("asked", ["first", "after a short turn"])
async def test_a_question_that_leaves_little_to_cut_is_asked_once_more(
    bench: Bench, asked: str
) -> None:
    bot = bench.bot_with(window=window(3_000))
    if asked != "first":
        bench.script(CHAT, Said(["Hello."]))
        await bot.ask("hi", session_id="s")
    refused = Said(error=ModelError("context_too_long", "too long"))
    bench.script(CHAT, refused, Said(["shorter"]))
    assert (await bot.ask("word " * 500, session_id="s")).text == "shorter"
    assert len(bench.model.prompts[-1]) == 2
    bench.script(CHAT, refused, refused)
    with pytest.raises(ModelError, match="too long"):
        await bot.ask("word " * 500, session_id="s")
    assert not bench.model.script


async def test_json_that_could_not_be_looked_up_is_an_error(bench: Bench) -> None:
    bench.knowledge.down = KnowledgeBaseError("unavailable", "RAGFlow is away.")
    bench.script(Said(call=Call("knowledge_base")))
    with pytest.raises(KnowledgeBaseError, match="RAGFlow is away"):
        await bench.bot_with(window=window(30_000)).ask("benefits", response_schema=SCHEMA)


async def test_the_caller_does_not_choose_whose_call_it_is(bench: Bench) -> None:
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("hi", user_id="ann", model_parameters={"user": "bob"})
    assert bench.model.options[-1] == {"user": "ann"}


async def test_a_number_that_was_cut_off_is_no_answer(bench: Bench) -> None:
    bot = bench.bot_with(window=window(30_000))
    bench.script(CHAT, *[Said(["12"], finish="length")] * 4)
    schema = {"type": "integer"}
    events = [event async for event in bot.stream("How many?", response_schema=schema)]
    error = events[-1]["data"]
    assert (error["code"], error["last_text"]) == ("model_schema", "12")
    assert "it was cut off" in error["message"]


async def test_an_answer_that_fits_a_schema(bench: Bench) -> None:
    bot = bench.bot_with(window=window(30_000))
    bench.script(LOOK_UP, Said(["It is ", "15 days"]), Said(['{"days": ', "15}"]))
    events = [event async for event in bot.stream("benefits", response_schema=SCHEMA)]
    contents = [event["data"] for event in events if event["type"] == "content"]
    assert contents == ['{"days": 15}']
    assert events[-1]["data"]["full_answer"] == '{"days": 15}'


async def test_an_answer_that_never_fits_is_an_error_with_the_last_text(bench: Bench) -> None:
    bot = bench.bot_with(window=window(30_000))
    bench.script(CHAT, *[Said([f'{{"days": "{n}"}}']) for n in range(4)])
    events = [event async for event in bot.stream("hi", response_schema=SCHEMA)]
    assert [event["type"] for event in events if event["type"] == "content"] == []
    error = events[-1]["data"]
    assert error["code"] == "model_schema"
    assert error["last_text"] == '{"days": "3"}'
    assert not bench.model.script


async def test_a_schema_needs_a_language_model(bench: Bench) -> None:
    bench.script(CHAT)
    with pytest.raises(ModelError, match="need a language model"):
        await bench.bot.ask("hi", response_schema=SCHEMA)


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        pytest.param({"response_schema": "x"}, "JSON Schema", id="a schema that is text"),
        pytest.param({"response_schema": {"type": 7}}, "schema", id="no schema"),
        pytest.param(
            {"model_parameters": {"api_key": "x"}}, "api_key", id="a foreign parameter"
        ),
        pytest.param({"model_parameters": [1]}, "must be an object", id="no object"),
        pytest.param({"stop": [1]}, "list of words", id="stop words are no words"),
    ],
)
async def test_wrong_wishes_are_refused(bench: Bench, choices: Any, told: str) -> None:
    bench.script(CHAT)
    with pytest.raises(InputError, match=told):
        await bench.bot_with(window=window(30_000)).ask("hi", **choices)


async def test_parameters_and_stop_words_reach_the_model(bench: Bench) -> None:
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("hi", model_parameters={"temperature": 0.1}, stop=["END"])
    assert bench.model.options[-1] == {"temperature": 0.1, "stop": ["END"]}
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("hi", user_id="ann")
    assert bench.model.options[-1] == {"user": "ann"}
    assert "temperature" not in bench.model.options[0]
