"""An assistant that answers by itself, in memory."""

import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from chatbot.domain import AnswerPiece, Assistant
from graphs import Context
from tests.integration.graph.conftest import BENEFITS, Bench
from tests.ports import Call, Said

LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
CHAT = Said(call=Call("general_chat"))
STEPS = ("load_history", "route", "enhance_query", "respond", "save_turn")


class ScriptedRespondent:
    """Gives the same pieces to every question."""

    def __init__(self, *pieces: AnswerPiece) -> None:
        self.pieces: Sequence[AnswerPiece] = pieces
        self.asked: list[tuple[str, str]] = []

    async def answer(
        self, question: str, assistant: Assistant
    ) -> AsyncGenerator[AnswerPiece, None]:
        self.asked.append((question, assistant.name))
        for piece in self.pieces:
            yield piece


def leave() -> ScriptedRespondent:
    return ScriptedRespondent(
        AnswerPiece(text="15 days [ID:0]"),
        AnswerPiece(text=" a year [ID:7]."),
        AnswerPiece(passages=[BENEFITS]),
    )


async def checkpoints(graph: Any, config: Any) -> dict[str, str]:
    return {
        state.next[0]: state.config["configurable"]["checkpoint_id"]
        async for state in graph.aget_state_history(config)
        if state.next
    }


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("complete", [True, False], ids=["completed", "broken off"])
async def test_a_run_that_is_executed_again_adds_nothing(
    bench: Bench, step: str, complete: bool
) -> None:
    bot = bench.bot_with(respondent=leave())
    graph: Any = bot.graph
    graph.checkpointer = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}, "run_id": uuid.uuid4()}
    bench.script(LOOK_UP)
    graph_input: Any = {"messages": [HumanMessage("benefits")]}
    await graph.ainvoke(graph_input, config, context=Context())
    at = (await checkpoints(graph, config))[step]
    if not complete:
        await bot.clear("t")
        bench.script(LOOK_UP)
    again = {**config, "configurable": {**config["configurable"], "checkpoint_id": at}}
    result: Any = await graph.ainvoke(None, again, context=Context())
    assert bench.used_up()
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert result["messages"][-1].content == "15 days [1] a year."
    [turn] = await bot.turns("t")
    assert (turn.id, turn.status) == (str(config["run_id"]), "complete")


async def test_an_answer_is_given_again_with_its_own_citations(bench: Bench) -> None:
    respondent = leave()
    bot = bench.bot_with(respondent=respondent)
    bench.script(LOOK_UP, LOOK_UP)
    first = await bot.ask("benefits", session_id="s")
    respondent.pieces = [AnswerPiece(text="Fifteen [ID:0].")]
    events = [event async for event in bot.regenerate("s")]
    assert [citation["number"] for citation in first.citations] == [1]
    assert events[-1]["data"]["full_answer"] == "Fifteen."
    [turn] = await bot.turns("s")
    assert turn.record["citations"] == []
    assert turn.record["replaces"] == first.metadata["turn_id"]


async def test_small_talk_is_not_for_the_assistant(bench: Bench) -> None:
    respondent = leave()
    bench.script(CHAT, Said(["Hello!"]))
    answer = await bench.bot_with(respondent=respondent).ask("hi")
    assert (answer.text, respondent.asked) == ("Hello!", [])


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        pytest.param(["a \ud83d", "\ude00 b"], "a 😀 b", id="half a character each"),
        pytest.param(["a", "\ud83d"], "a�", id="half a character at the end"),
        pytest.param(["See [I", "D:", "0", "]."], "See [1].", id="a marker in pieces"),
        pytest.param(["`[ID:0]` [ID:0]"], "`[ID:0]` [1]", id="code"),
        pytest.param(["> [ID:0]\n", "so [ID:0]"], "> [1]\nso [1]", id="a quotation"),
    ],
)
async def test_pieces_make_an_answer(bench: Bench, pieces: Sequence[str], text: str) -> None:
    bench.script(LOOK_UP)
    respondent = ScriptedRespondent(
        *(AnswerPiece(text=piece) for piece in pieces), AnswerPiece(passages=[BENEFITS])
    )
    answer = await bench.bot_with(respondent=respondent).ask("benefits", session_id="s")
    [turn] = await bench.bot.turns("s")
    assert answer.text == turn.answer == text
