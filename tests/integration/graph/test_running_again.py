"""A server that died executes its runs again, from whichever checkpoint it has kept."""

import uuid
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs import Context
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said

LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
STEPS = ("load_history", "route", "enhance_query", "retrieve", "answer", "save_turn")


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
    graph: Any = bench.bot.graph
    graph.checkpointer = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}, "run_id": uuid.uuid4()}
    bench.script(LOOK_UP, Said(["15 days [1]"]))
    graph_input: Any = {"messages": [HumanMessage("benefits")]}
    await graph.ainvoke(graph_input, config, context=Context())
    at = (await checkpoints(graph, config))[step]
    if not complete:  # what a process that died had not saved
        await bench.bot.clear("t")
        bench.script(LOOK_UP, Said(["15 days [1]"]))
    again = {**config, "configurable": {**config["configurable"], "checkpoint_id": at}}
    result: Any = await graph.ainvoke(None, again, context=Context())
    assert bench.used_up()
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert result["messages"][-1].content == "15 days [1]"
    [turn] = await bench.bot.turns("t")
    assert (turn.id, turn.status) == (str(config["run_id"]), "complete")
    assert turn.question == "benefits"
