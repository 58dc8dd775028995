"""Every way through the graph, as the traces of its turns tell it."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langsmith import trace as traced

from chatbot.domain import AnswerPiece, Assistant, Findings
from chatbot.errors import KnowledgeBaseError, ModelError
from chatbot.images.policy import ImagePolicy
from chatbot.tools.toolbox import Toolbox
from graphs import Chatbot, Context
from tests.integration.graph.conftest import BENEFITS, Bench
from tests.integration.graph.test_images import LIMIT, ONE
from tests.integration.graph.test_responding import ScriptedRespondent
from tests.ports import Call, InMemoryKnowledgeBase, Said
from tests.trajectories import Traces, Trajectory

pytestmark = pytest.mark.langsmith

CHAT = Said(call=Call("general_chat"))
LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
RESOLVED = Said(
    call=Call("knowledge_base", '{"assistants": [], "question": "benefits of leave"}')
)
UNRESOLVED = Said(call=Call("knowledge_base", '{"assistants": ["handbook"], "question": ""}'))
SAID = Said(["The answer."])
BROKEN = Said(error=ModelError("server", "It broke."))

ROUTED = ("load_history", "route", "route > router (early)")
ANSWERED = ("answer", "answer > answer", "save_turn")
SEARCHED = ("enhance_query", "retrieve", "retrieve > search")


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    await asyncio.sleep(0)
    return f"{city}: sunny"


async def events_of(events: AsyncGenerator[Any, None]) -> list[Any]:
    return [event async for event in events]


@pytest.mark.parametrize("question", ["benefits ?", "福利 benefits ？"])
async def test_a_question_for_the_knowledge_base(
    traces: Traces, bench: Bench, question: str
) -> None:
    bench.script(LOOK_UP, SAID)
    trace = traces.of(await bench.bot.ask(question, session_id="s", user_id="ann"))
    trace.goes(*ROUTED, *SEARCHED, *ANSWERED)
    trace.has(
        intent="knowledge_base",
        route_reason="the model called knowledge_base",
        query=question,
        assistants=["handbook"],
        passages_found=1,
        status="complete",
        model="scripted",
        degraded=[],
        session_id="s",
        user_id="ann",
        thread_id="ann s",
    )
    assert trace.facts["first_token_ms"] <= trace.facts["total_ms"]
    [search] = [each for each in trace.run.children[3].children if each.name == "search"]
    assert search.data["run_type"] == "retriever"
    [document] = search.data["outputs"]["documents"]
    assert document["page_content"] == BENEFITS.text
    assert document["metadata"]["score"] == BENEFITS.score


def threads(trace: Trajectory) -> set[str]:
    waiting, found = [trace.run], set()
    while waiting:
        run = waiting.pop()
        found.add(run.metadata["thread_id"])
        waiting += run.children
    return found


async def test_every_run_of_a_session_is_in_its_thread(traces: Traces, bench: Bench) -> None:
    bench.script(LOOK_UP, SAID)
    trace = traces.of(await bench.bot.ask("benefits ?", session_id="会话", user_id="ann"))
    assert threads(trace) == {"ann 会话"}


async def test_a_thread_of_langgraph_stays_one(traces: Traces, bench: Bench) -> None:
    bench.script(LOOK_UP, SAID)
    graph: Any = bench.bot.graph
    graph.checkpointer = InMemorySaver()
    config = {"run_id": uuid.uuid4(), "configurable": {"thread_id": "t"}}
    asked = {"messages": [HumanMessage("benefits ?")]}
    await graph.ainvoke(asked, config, context=Context(session_id="s"))
    trace = traces.of(str(config["run_id"]))
    assert threads(trace) == {"t"}
    trace.has(session_id="s", turn_id=str(config["run_id"]))


async def test_whoever_asks_may_be_traced(traces: Traces, bench: Bench) -> None:
    bench.script(CHAT, SAID)
    with traced("caller", client=traces.client, metadata={"theirs": True}) as caller:
        answer = await bench.bot.ask("Hello", session_id="s")
    found = traces.of(answer)
    found.goes(*ROUTED, *ANSWERED)
    found.has(intent="general_chat", status="complete", thread_id="s")
    assert found.run.data["parent_run_id"] == str(caller.id)
    [turn] = await bench.bot.turns("s")
    assert turn.record["trace_id"] == str(caller.trace_id)
    assert "intent" not in traces.of(str(caller.id)).facts


@pytest.mark.parametrize("early", [True, False])
async def test_a_call_that_is_read_early(traces: Traces, bench: Bench, *, early: bool) -> None:
    rest = asyncio.Event()
    if not early:
        rest.set()
    bench.script(Said(call=Call("general_chat", pause=rest)), SAID)
    bot = bench.bot_with(limits=replace(bench.limits, route_early=early))
    trace = traces.of(await bot.ask("Hello", session_id="s"))
    trace.has(route_early="used" if early else "none")
    [turn] = await bot.turns("s")
    assert turn.record.get("route_early") == ("used" if early else None)


async def test_steps_show_the_turn(traces: Traces, bench: Bench) -> None:
    bench.script(LOOK_UP, SAID)
    answer = await bench.bot.ask("benefits ?")
    shown = {"id": answer.metadata["turn_id"], "question": "benefits ?"}
    steps = traces.of(answer).run.children
    assert steps[0].data["outputs"]["turn"] == shown
    taken = [step.data["inputs"]["input"]["turn"] for step in steps[1:]]
    assert taken == [shown] * len(steps[1:])
    assert "object at 0x" not in str([step.data for step in steps])


async def test_small_talk(traces: Traces, bench: Bench) -> None:
    bench.script(CHAT, SAID)
    trace = traces.of(await bench.bot.ask("谢谢你"))
    trace.goes(*ROUTED, *ANSWERED)
    trace.has(intent="general_chat", prefetch=None, passages_found=None)


@pytest.mark.parametrize(
    ("script", "steps"),
    [
        pytest.param([RESOLVED], ("enhance_query",), id="the router resolves it"),
        pytest.param(
            [UNRESOLVED, Said(["benefits of leave"])],
            ("enhance_query", "enhance_query > rewrite_question"),
            id="a call of its own resolves it",
        ),
    ],
)
async def test_a_follow_up(
    traces: Traces, bench: Bench, script: Sequence[Said], steps: Sequence[str]
) -> None:
    bench.script(CHAT, SAID, *script, SAID)
    await bench.bot.ask("Tell me of your benefits")
    trace = traces.of(await bench.bot.ask("And how many days ?"))
    # Both what it means and how it was put are looked for.
    searches = [step for step in trace.steps if step == "retrieve > search"]
    trace.goes(*ROUTED, *steps, "retrieve", *searches, *ANSWERED)
    assert searches
    trace.has(query="benefits of leave", degraded=[])


@pytest.mark.parametrize(
    ("said", "router", "reason"),
    [
        pytest.param(BROKEN, "route > router (failed)", "failed (model_server)", id="fails"),
        pytest.param(
            Said(["Hm."], pause=asyncio.Event()),
            "route > router (cancelled)",
            "did not answer within 0.05 s",
            id="is late",
        ),
        pytest.param(Said(["42"]), "route > router", "called no tool", id="calls nothing"),
    ],
)
async def test_the_router_does_not_decide(
    traces: Traces, bench: Bench, said: Said, router: str, reason: str
) -> None:
    bench.limits = replace(bench.limits, router_seconds=0.05 if said.pause else 30)
    bench.script(said, SAID)
    trace = traces.of(await bench.bot.ask("benefits ?"))
    trace.goes("load_history", "route", router, *ANSWERED)
    trace.has(intent="general_chat", degraded=["router"], error=None)
    assert reason in trace.facts["route_reason"]


async def test_the_rewriting_fails(traces: Traces, bench: Bench) -> None:
    bench.script(CHAT, SAID, UNRESOLVED, BROKEN, SAID)
    await bench.bot.ask("Tell me of your benefits")
    trace = traces.of(await bench.bot.ask("benefits ?"))
    assert "enhance_query > rewrite_question (failed)" in trace.steps
    trace.has(query="benefits ?", degraded=["rewriting"], status="complete")


async def test_the_assistant_that_is_named_fails(traces: Traces, bench: Bench) -> None:
    bench.knowledge.failing["handbook"] = KnowledgeBaseError("unavailable", "It is down.")
    bench.script(LOOK_UP, SAID)
    trace = traces.of(await bench.bot.ask("湖水清澈，风景优美 ?"))
    trace.goes(
        *ROUTED,
        *("enhance_query", "retrieve", "retrieve > search (failed)", "retrieve > search"),
        *ANSWERED,
    )
    trace.has(assistants=["handbook", "瓦尔登湖"], degraded=["knowledge"], passages_found=1)


async def test_the_knowledge_base_is_down(traces: Traces, bench: Bench) -> None:
    bench.knowledge.down = KnowledgeBaseError("unavailable", "It is down.")
    bench.script(LOOK_UP)
    trace = traces.of(await bench.bot.ask("benefits ?"))
    trace.goes(*ROUTED, "enhance_query", "retrieve", "answer", "save_turn")
    trace.has(degraded=["knowledge"], status="complete", model=None)


async def test_nothing_is_found_where_it_was_looked_for(traces: Traces, bench: Bench) -> None:
    bench.script(LOOK_UP, SAID)
    trace = traces.of(await bench.bot.ask("瓦尔登湖 ?"))
    trace.goes(*ROUTED, *SEARCHED, "retrieve > search", *ANSWERED)
    trace.has(assistants=["handbook", "瓦尔登湖"], passages_found=1)


class Patient(InMemoryKnowledgeBase):
    """Searches only once it is let."""

    go_on: asyncio.Event

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        await self.go_on.wait()
        return await super().search(query, assistants=assistants, limit=limit)


@pytest.mark.parametrize(
    ("call", "prefetch", "guesses"),
    [
        pytest.param(LOOK_UP, "used", ["guess", "guess"], id="of use"),
        pytest.param(CHAT, "unused", ["guess, cancelled"] * 2, id="in vain"),
    ],
)
async def test_searches_on_a_guess(
    traces: Traces, bench: Bench, call: Said, prefetch: str | None, guesses: Sequence[str]
) -> None:
    patient = Patient(passages=bench.knowledge.passages)
    patient.go_on = asyncio.Event()
    if prefetch == "used":
        patient.go_on.set()
    limits = replace(bench.limits, prefetch=2, head_start=False)
    bench.script(replace(call, pieces=[" "]), SAID)
    bot = bench.bot_with(knowledge=patient, limits=limits)
    trace = traces.of(await bot.ask("benefits ?"))
    found = [step for step in trace.steps if step.startswith("route > search")]
    assert found == [f"route > search ({remark})" for remark in guesses]
    trace.has(prefetch=prefetch, status="complete")


@pytest.mark.parametrize(
    ("assistant", "head_start", "remark"),
    [
        pytest.param("handbook", "used", "guess", id="right"),
        pytest.param("瓦尔登湖", "unused", "guess, cancelled", id="wrong"),
    ],
)
async def test_an_answer_on_a_guess(
    traces: Traces, bench: Bench, assistant: str, head_start: str, remark: str
) -> None:
    come, never = asyncio.Event(), asyncio.Event()
    begun = replace(SAID, pause=None if head_start == "used" else never)
    arguments = f'{{"assistants": ["{assistant}"]}}'
    bench.script(Said(call=Call("knowledge_base", arguments, pause=come)), begun, SAID)
    bot = bench.bot_with(limits=replace(bench.limits, prefetch=2))
    asking = asyncio.create_task(bot.ask("benefits 瓦尔登湖"))
    async with asyncio.timeout(30):
        while len(bench.model.prompts) < 2:  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.01)
    come.set()
    trace = traces.of(await asking)
    guesses = [f"route > answer ({remark})", *["route > search (guess)"] * 2]
    anew = ["answer > answer"] if head_start == "unused" else []
    trace.goes(*ROUTED, *guesses, *SEARCHED, "answer", *anew, "save_turn")
    trace.has(head_start=head_start, prefetch="used")


async def again(bot: Chatbot, turn_id: str) -> list[Any]:
    return await events_of(bot.regenerate("s", turn_id))


async def otherwise(bot: Chatbot, turn_id: str) -> list[Any]:
    return await events_of(bot.edit("s", turn_id, "Hello again"))


@pytest.mark.parametrize("change", [again, otherwise], ids=["regenerate", "edit"])
async def test_a_turn_is_replaced(traces: Traces, bench: Bench, change: Any) -> None:
    bot = bench.bot
    bench.script(CHAT, SAID, CHAT, SAID)
    turn_id = (await bot.ask("Hello", session_id="s")).metadata["turn_id"]
    trace = traces.of(await change(bot, turn_id))
    trace.goes(*ROUTED, *ANSWERED)
    trace.has(replaces=turn_id, status="complete", thread_id="s")


async def test_tools(traces: Traces, bench: Bench) -> None:
    bot = bench.bot_with(toolbox=Toolbox(tools=[weather]))
    bench.script(CHAT, Said(call=Call("weather", '{"city": "Paris"}')), SAID)
    trace = traces.of(await bot.ask("Weather in Paris?"))
    trace.goes(
        *ROUTED,
        *("answer", "answer > answer", "answer > weather", "answer > answer", "save_turn"),
    )
    [called] = [run for run in trace.run.children[2].children if run.name == "weather"]
    assert called.data["run_type"] == "tool"


async def test_an_image(traces: Traces, bench: Bench) -> None:
    policy = ImagePolicy(longest=LIMIT)
    bot = bench.bot_with(sees_images=True, images=bench.history, image_policy=policy)
    bench.script(CHAT, SAID)
    trace = traces.of(await bot.ask("What is this?", images=[ONE.data]))
    trace.goes(*ROUTED, *ANSWERED)
    trace.has(status="complete", degraded=[])


async def test_an_assistant_answers_by_itself(traces: Traces, bench: Bench) -> None:
    respondent = ScriptedRespondent(AnswerPiece(text="15 days."))
    bench.script(LOOK_UP)
    trace = traces.of(await bench.bot_with(respondent=respondent).ask("benefits ?"))
    trace.goes(*ROUTED, "enhance_query", "respond", "respond > answer", "save_turn")
    trace.has(assistants=["handbook"], model="handbook")


async def test_an_assistant_that_has_no_answer(traces: Traces, bench: Bench) -> None:
    respondent = ScriptedRespondent()
    bench.script(LOOK_UP, SAID)
    trace = traces.of(await bench.bot_with(respondent=respondent).ask("瓦尔登湖 ?"))
    trace.goes(
        *(*ROUTED, "enhance_query", "respond", "respond > answer"),
        *("retrieve", "retrieve > search", *ANSWERED),
    )
