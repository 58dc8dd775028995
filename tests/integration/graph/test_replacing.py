from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from chatbot.errors import InputError
from chatbot.events import Event
from graphs import Chatbot, Context
from graphs.opening import FROM_CHECKPOINT
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))


async def converse(bench: Bench, *questions: str) -> Chatbot:
    for question in questions:
        bench.script(CHAT, Said([f"answer to {question}"]))
        await bench.bot.ask(question, session_id="s")
    return bench.bot


def answer(events: list[Event]) -> str:
    assert events[-1]["type"] == "end"
    text: str = events[-1]["data"]["full_answer"]
    return text


def prompt(bench: Bench) -> list[str]:
    return [str(message.content) for message in bench.model.prompts[-1][1:]]


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
    assert [turn.answer for turn in await bot.turns("s")] == ["answer to one", "try 2"]


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


class Thread:
    """A thread as a server keeps it, whose client may go on from an earlier point."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.graph = bench.bot.graph
        self.graph.checkpointer = InMemorySaver()

    def config(self, checkpoint_id: str | None = None) -> Any:
        configurable: dict[str, Any] = {"thread_id": "t"}
        if checkpoint_id:
            configurable |= {"checkpoint_id": checkpoint_id, FROM_CHECKPOINT: True}
        return {"configurable": configurable}

    async def ask(self, question: str | None, checkpoint_id: str | None = None) -> list[str]:
        self.bench.script(CHAT, Said([f"answer to {question}"]))
        graph_input: Any = question and {"messages": [HumanMessage(question)]}
        result = await self.graph.ainvoke(
            graph_input, self.config(checkpoint_id), context=Context()
        )
        return [str(message.content) for message in result["messages"]]

    async def checkpoint(self, messages: int, step: str | None) -> str:
        async for state in self.graph.aget_state_history(self.config()):
            if len(state.values.get("messages", [])) == messages and state.next == (
                (step,) if step else ()
            ):
                checkpoint_id: str = state.config["configurable"]["checkpoint_id"]
                return checkpoint_id
        message = "there is no such checkpoint"
        raise AssertionError(message)


async def test_a_client_regenerates_from_a_checkpoint(bench: Bench) -> None:
    thread = Thread(bench)
    await thread.ask("one")
    await thread.ask("two")
    messages = await thread.ask(None, await thread.checkpoint(3, "load_history"))
    assert messages == ["one", "answer to one", "two", "answer to None"]
    assert prompt(bench) == ["one", "answer to one", "two"]
    turns = await bench.bot.turns("t")
    assert [turn.answer for turn in turns] == ["answer to one", "answer to None"]


async def test_a_client_edits_from_a_checkpoint(bench: Bench) -> None:
    thread = Thread(bench)
    for question in ("one", "two", "three"):
        await thread.ask(question)
    messages = await thread.ask("another two", await thread.checkpoint(2, None))
    assert messages[2:] == ["another two", "answer to another two"]
    assert [turn.question for turn in await bench.bot.turns("t")] == ["one", "another two"]


async def test_a_thread_that_lost_its_checkpoints_removes_nothing(bench: Bench) -> None:
    await Thread(bench).ask("one")
    await Thread(bench).ask("two")
    assert prompt(bench) == ["one", "answer to one", "two"]
    assert [turn.question for turn in await bench.bot.turns("t")] == ["one", "two"]


async def test_the_same_turn_may_be_replaced_twice(bench: Bench) -> None:
    bot = await converse(bench, "one", "two")
    second = (await bot.turns("s"))[1]
    for number in range(2):
        bench.script(CHAT, Said([f"try {number}"]))
        [event async for event in bot.regenerate("s", second.id)]
        assert prompt(bench) == ["one", "answer to one", "two"]


async def test_a_stopped_answer_before_the_checkpoint_is_not_replaced(bench: Bench) -> None:
    thread = Thread(bench)
    await thread.ask("one")
    bench.script(CHAT, Said(["half of it"], error=ZeroDivisionError("broke")))
    with pytest.raises(Exception, match="went wrong"):
        await thread.graph.ainvoke(
            {"messages": [HumanMessage("two")]}, thread.config(), context=Context()
        )
    head = (await thread.graph.aget_state(thread.config())).config["configurable"]
    bench.model.script.clear()
    bench.script(CHAT, Said(["more"]))
    await thread.graph.aupdate_state(thread.config(), {"messages": []}, as_node="save_turn")
    head = (await thread.graph.aget_state(thread.config())).config["configurable"]
    await thread.graph.ainvoke(
        {"messages": [HumanMessage("go on")]},
        thread.config(head["checkpoint_id"]),
        context=Context(),
    )
    assert [turn.answer for turn in await bench.bot.turns("t")] == [
        *("answer to one", "half of it", "more")
    ]
    assert "half of it" in prompt(bench)


async def test_a_stopped_turn_before_the_checkpoint_stays(bench: Bench) -> None:
    thread = Thread(bench)
    bench.script(CHAT, Said(error=ZeroDivisionError("no answer")))
    with pytest.raises(Exception, match="went wrong"):
        await thread.graph.ainvoke(
            {"messages": [HumanMessage("one")]}, thread.config(), context=Context()
        )
    bench.model.script.clear()
    await thread.ask("two")
    await thread.ask(None, await thread.checkpoint(2, "load_history"))
    turns = await bench.bot.turns("t")
    assert [turn.question for turn in turns] == ["one", "two"]
    assert turns[1].answer == "answer to None"
