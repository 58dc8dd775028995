from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from chatbot.domain import Session, Turn
from chatbot.errors import InputError
from chatbot.events import Event
from graphs import Chatbot
from tests.integration.graph.conftest import Bench, prompt
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))
NOW = datetime.now(UTC)


async def converse(bench: Bench, *questions: str) -> Chatbot:
    for question in questions:
        bench.script(CHAT, Said([f"answer to {question}"]))
        await bench.bot.ask(question, session_id="s")
    return bench.bot


def answer(events: list[Event]) -> str:
    assert events[-1]["type"] == "end"
    text: str = events[-1]["data"]["full_answer"]
    return text


async def test_the_last_answer_is_given_again(bench: Bench) -> None:
    bot = await converse(bench, "one", "two")
    bench.script(CHAT, Said(["a better answer"]))
    events = [event async for event in bot.regenerate("s")]
    assert answer(events) == "a better answer"
    assert prompt(bench) == ["one", "answer to one", "two"]
    turns = await bot.turns("s")
    assert [turn.answer for turn in turns] == ["answer to one", "a better answer"]
    everything = await bot.turns("s", replaced=True)
    assert len(everything) == 3
    assert everything[2].record["replaces"] == everything[1].id


async def test_an_edited_question_takes_the_place_of_all_after_it(bench: Bench) -> None:
    bot = await converse(bench, "one", "two", "three")
    second = (await bot.turns("s"))[1]
    bench.script(CHAT, Said(["edited"]))
    events = [event async for event in bot.edit("s", second.id, "two and a half")]
    assert answer(events) == "edited"
    assert prompt(bench) == ["one", "answer to one", "two and a half"]
    assert [turn.question for turn in await bot.turns("s")] == ["one", "two and a half"]
    await converse(bench, "four")
    assert prompt(bench)[2:] == ["two and a half", "edited", "four"]


async def test_a_replacement_may_be_replaced(bench: Bench) -> None:
    bot = await converse(bench, "one", "two")
    for number in range(3):
        bench.script(CHAT, Said([f"try {number}"]))
        assert answer([event async for event in bot.regenerate("s")]) == f"try {number}"
        assert prompt(bench) == ["one", "answer to one", "two"]
    assert [turn.answer for turn in await bot.turns("s")] == ["answer to one", "try 2"]


CHOSEN: dict[str, Any] = {
    "assistants": ["handbook"],
    "route": "general_chat",
    "language": "Chinese",
    "instructions": "Speak like a pirate.",
    "timezone": "Asia/Shanghai",
    "model_parameters": {"temperature": 0.1},
    "stop": ["END"],
}


async def asked_again(bench: Bench, **options: Any) -> tuple[str, Mapping[str, Any]]:
    """Answer the last question again; return the prompt's instructions and its options."""
    bench.script(Said(["again"]))
    answer([event async for event in bench.bot.regenerate("s", **options)])
    return str(bench.model.prompts[-1][0].content), bench.model.options[-1]


async def test_a_question_is_asked_again_as_it_was_asked(bench: Bench) -> None:
    bench.script(Said(["first"]))
    await bench.bot.ask("one", session_id="s", **CHOSEN)
    for _ in range(2):  # what was chosen also goes on from a replacement
        instructions, options = await asked_again(bench)
        assert "pirate" in instructions
        assert "Chinese" in instructions
        assert options == {"temperature": 0.1, "stop": ["END"]}
        assert (await bench.bot.turns("s"))[-1].record["choices"] == CHOSEN
    bench.script(CHAT, Said(["edited"]))
    turn = (await bench.bot.turns("s"))[-1]
    answer([event async for event in bench.bot.edit("s", turn.id, "another one")])
    assert "pirate" in str(bench.model.prompts[-1][0].content)


async def test_an_edited_question_is_routed_anew_unless_its_route_is_chosen(
    bench: Bench,
) -> None:
    async def edited(question: str, **options: Any) -> Mapping[str, Any]:
        turn = (await bench.bot.turns("s"))[-1]
        answer([event async for event in bench.bot.edit("s", turn.id, question, **options)])
        return (await bench.bot.turns("s"))[-1].record

    bench.script(Said(["first"]))
    await bench.bot.ask("hello", session_id="s", route="general_chat", language="Chinese")
    bench.script(Said(call=Call("knowledge_base")), Said(["looked up"]))
    record = await edited("How many days of leave?")
    assert record["intent"] == "knowledge_base"
    assert record["choices"] == {"language": "Chinese"}
    bench.script(Said(["chatted"]))
    record = await edited("And pay?", route="general_chat")
    assert record["intent"] == "general_chat"
    bench.script(Said(["the same"]))
    assert (await edited("And pay?"))["choices"]["route"] == "general_chat"


async def test_what_is_chosen_anew_goes_before_what_was_chosen(bench: Bench) -> None:
    bench.script(Said(["first"]))
    await bench.bot.ask("one", session_id="s", **CHOSEN)
    instructions, options = await asked_again(
        bench, instructions="Speak like a king.", model_parameters=None
    )
    assert "king" in instructions
    assert "pirate" not in instructions
    assert options == {"stop": ["END"]}


@pytest.mark.parametrize("choices", [None, "x", [1], {"user_id": "eve", "no such": 1}])
async def test_choices_that_nobody_can_have_made_are_passed_over(
    bench: Bench, choices: Any
) -> None:
    turn = Turn(id="t", question="one", answer="a", started_at=NOW, record={"choices": choices})
    await bench.history.save(Session(session_id="s"), turn)
    bench.script(CHAT, Said(["again"]))
    assert answer([event async for event in bench.bot.regenerate("s")]) == "again"
    assert [turn.answer for turn in await bench.bot.turns("s")] == ["again"]


async def test_a_replacement_that_fails_replaces_nothing(bench: Bench) -> None:
    bot = await converse(bench, "one", "two")
    bench.script(CHAT, Said(error=ZeroDivisionError("no answer")))
    events = [event async for event in bot.regenerate("s")]
    assert events[-1]["type"] == "error"
    assert [turn.answer for turn in await bot.turns("s")] == ["answer to one", "answer to two"]
    assert len(await bot.turns("s", replaced=True)) == 3


@pytest.mark.parametrize("turn_id", ["no-such-turn", None])
async def test_what_is_not_there_cannot_be_replaced(bench: Bench, turn_id: str | None) -> None:
    bot = bench.bot
    with pytest.raises(InputError, match="no such turn"):
        await anext(bot.regenerate("empty", turn_id))


async def test_a_run_may_not_replace_what_is_not_there(bench: Bench) -> None:
    bot = await converse(bench, "one")
    with pytest.raises(InputError, match="no such turn"):
        await bot.ask("two", session_id="s", replaces="no-such-turn")
    assert len(await bot.turns("s")) == 1


async def test_the_same_turn_may_be_replaced_twice(bench: Bench) -> None:
    bot = await converse(bench, "one", "two")
    second = (await bot.turns("s"))[1]
    for number in range(2):
        bench.script(CHAT, Said([f"try {number}"]))
        [event async for event in bot.regenerate("s", second.id)]
        assert prompt(bench) == ["one", "answer to one", "two"]
