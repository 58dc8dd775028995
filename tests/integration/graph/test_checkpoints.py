"""Clients of a LangGraph server go on from an earlier point: they ask again, or edit."""

import uuid
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from chatbot.errors import ModelError
from chatbot.models.selection import open_model, select_model
from chatbot.settings import Settings
from graphs import Context
from graphs.opening import FROM_CHECKPOINT
from tests.integration.graph.conftest import Bench, prompt
from tests.ports import Call, Said
from tests.trajectories import Traces

CHAT = Said(call=Call("general_chat"))


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


@pytest.mark.parametrize("step", ["load_history", "route", "answer"])
async def test_a_client_regenerates_from_a_checkpoint(bench: Bench, step: str) -> None:
    thread = Thread(bench)
    await thread.ask("one")
    await thread.ask("two")
    point = await thread.checkpoint(3, step)
    for _ in range(2):
        messages = await thread.ask(None, point)
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


async def test_the_same_words_again_are_another_question(bench: Bench) -> None:
    thread = Thread(bench)
    await thread.ask("go on")
    bench.script(CHAT, Said(["half"], error=ZeroDivisionError("broke")))
    with pytest.raises(Exception, match="went wrong"):
        await thread.graph.ainvoke(
            {"messages": [HumanMessage("go on")]}, thread.config(), context=Context()
        )
    bench.model.script.clear()
    await thread.ask(None, await thread.checkpoint(3, "load_history"))
    assert prompt(bench) == ["go on", "answer to go on", "go on"]
    turns = await bench.bot.turns("t")
    assert [turn.answer for turn in turns] == ["answer to go on", "answer to None"]


async def test_no_thread_tells_where_a_model_is_but_its_trace_does(
    bench: Bench, traces: Traces
) -> None:
    settings = Settings(openai_base_url="http://127.0.0.2:9/v1", llm_model="away")
    choice = select_model(settings)
    assert choice is not None
    turn_id = uuid.uuid4()
    async with open_model(choice, settings) as model:
        graph = bench.bot_with(model=model).graph
        graph.checkpointer = InMemorySaver()
        config: Any = {"configurable": {"thread_id": "t"}, "run_id": turn_id}
        with pytest.raises(ModelError) as caught:
            await graph.ainvoke({"messages": [HumanMessage("one")]}, config, context=Context())
        [failed] = (await graph.aget_state(config)).tasks
    assert "away: no connection" in str(failed.error)
    assert "127.0.0.2" not in f"{failed!r} {caught.value!r}"
    traces.of(str(turn_id)).has(status="failed")
    for told in (b"The language model (away at 127.0.0.2:9)", b"away at 127.0.0.2:9: no"):
        assert told in traces.sink.raw
