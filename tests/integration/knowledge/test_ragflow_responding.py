"""RAGFlow's assistants answer by themselves, through the whole graph."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import SecretStr

from chatbot.events import Event
from chatbot.history.local import LocalChatHistory
from chatbot.knowledge.ragflow import RagflowAnswers, RagflowKnowledgeBase, RagflowTransport
from chatbot.limits import Limits
from chatbot.ports import Ports
from chatbot.settings import Settings
from graphs import Chatbot, Context, open_chatbot
from tests.ports import Call, Said, ScriptedChatModel
from tests.servers.ragflow import RagflowServer, Version
from tests.servers.ragflow_completion import NOTHING, PROMPT
from tests.servers.ragflow_knowledge import Chat, sample

QUESTION = "How long does the warranty of the X200 pump last?"
BEST = "The warranty of the X200 pump lasts 24 months from the date of purchase."
PUMP = Said(call=Call("knowledge_base", '{"assistants": ["X200 manual"]}'))
SHAPES = (
    *("deltas", "cumulative", "thinking", "think tags", "plain frame", "table", "bytewise"),
    *("marked at last", "final text", "reference as dict", "raw reference", "noise"),
    "json answer",
)
UNKNOWN = Said(call=Call("knowledge_base", '{"assistants": []}'))
OURS = Said(["From the others [1]."])


def only_pump(**settings: Any) -> Sequence[Chat]:
    """Return the assistant that knows the pump, alone."""
    (*_, pump) = sample()
    pump.prompt_config = settings
    return [pump]


@asynccontextmanager
async def opened(
    server: RagflowServer,
    *script: Said,
    silence_seconds: float = 30,
    turn_seconds: float = 60,
    responds: bool = True,
) -> AsyncIterator[Chatbot]:
    transport = RagflowTransport(
        server.url, server.key, timeout_seconds=30, retry_seconds=(0.01,), recheck_seconds=0.05
    )
    answers = RagflowAnswers(
        transport, RagflowKnowledgeBase(transport), silence_seconds=silence_seconds
    )
    async with LocalChatHistory(":memory:") as history:
        try:
            yield Chatbot(
                Ports(
                    history=history,
                    knowledge=answers,
                    respondent=answers if responds else None,
                    model=ScriptedChatModel(script=list(script)),
                    limits=Limits(prefetch=0, turn_seconds=turn_seconds),
                )
            )
        finally:
            await answers.close()


def model_of(bot: Chatbot) -> ScriptedChatModel:
    model = bot._ports.model  # noqa: SLF001 - what the model was asked
    assert isinstance(model, ScriptedChatModel)
    return model


async def events_of(bot: Chatbot, question: str = QUESTION, **choices: Any) -> list[Event]:
    return [event async for event in bot.stream(question, session_id="s", **choices)]


def said(events: Sequence[Event], kind: str = "content") -> str:
    return "".join(event["data"] for event in events if event["type"] == kind)


def last(events: Sequence[Event], kind: str) -> Any:
    return next((e["data"] for e in reversed(events) if e["type"] == kind), None)


@pytest.mark.parametrize("version", ["0.22", "0.27"])
@pytest.mark.parametrize(
    ("shape", "streamed", "thoughts", "whole"),
    [
        pytest.param("deltas", f"{BEST} [1]", "", f"{BEST} [1]", id="what is new each time"),
        pytest.param(
            "cumulative", f"{BEST} [1]", "", f"{BEST} [1]", id="all of the text each time"
        ),
        pytest.param(
            "thinking",
            f"{BEST} [1]",
            "Let me see.",
            f"{BEST} [1]",
            id="markers around thoughts",
        ),
        pytest.param(
            "think tags", f"{BEST} [1]", "Let me see.", f"{BEST} [1]", id="tags around thoughts"
        ),
        pytest.param("plain frame", f"{BEST} [1]", "", f"{BEST} [1]", id="a single frame"),
        pytest.param("table", f"{BEST} [1]", "", f"{BEST} [1]", id="references without text"),
        pytest.param(
            "marked at last", BEST, "", f"{BEST[:-1]} [1].", id="markers of the last text alone"
        ),
        pytest.param(
            "final text", BEST, "", f"{BEST} [1]", id="all of the text again at the end"
        ),
        pytest.param(
            "reference as dict", f"{BEST} [1]", "", f"{BEST} [1]", id="references by their ids"
        ),
        pytest.param(
            "raw reference", f"{BEST} [1]", "", f"{BEST} [1]", id="references of an old server"
        ),
        pytest.param("bytewise", f"{BEST} [1]", "", f"{BEST} [1]", id="byte after byte"),
        pytest.param(
            "noise", f"{BEST} [1]", "", f"{BEST} [1]", id="frames without an answer between"
        ),
        pytest.param("json answer", f"{BEST} [1]", "", f"{BEST} [1]", id="JSON, not a stream"),
    ],
)
async def test_the_answer_goes_straight_through(
    version: Version, shape: str, streamed: str, thoughts: str, whole: str
) -> None:
    with RagflowServer(version=version) as server:
        server.completions.shape = shape
        async with opened(server, PUMP) as bot:
            events = await events_of(bot)
            (turn,) = await bot.turns("s")
    assert said(events) == streamed
    assert said(events, "reasoning") == thoughts
    end = last(events, "end")
    assert end["full_answer"] == turn.answer == whole
    assert end["metadata"]["degraded"] == []
    assert end["metadata"]["assistants"] == ["X200 manual"]
    (citation,) = last(events, "citations")
    assert (citation["number"], citation["document"]) == (1, "pump.pdf")
    assert (turn.status, turn.record["citations"]) == ("complete", [citation])
    assert last(events, "usage")["model"] == "X200 manual"
    assert PROMPT not in repr(events) + repr(turn)
    types = [event["type"] for event in events]
    assert types.index("metadata") < types.index("content")


@pytest.mark.parametrize("version", ["0.22", "0.27"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_as_the_source_is_given_to_our_model(
    version: Version, shape: str
) -> None:
    with RagflowServer(version=version) as server:
        server.completions.shape = shape
        async with opened(server, PUMP, OURS, responds=False) as bot:
            events = await events_of(bot)
            prompt = model_of(bot).prompts[-1]
    assert said(events) == "From the others [1]."
    assert last(events, "citations")[0]["document"] == "X200 manual"
    assert BEST in prompt[-1].text.replace(" .", ".")
    assert "ID:0" not in prompt[-1].text
    assert "##0" not in prompt[-1].text
    assert BEST not in prompt[0].text
    assert PROMPT not in repr(prompt) + repr(events)


async def test_an_answer_without_references_has_no_markers() -> None:
    with RagflowServer() as server:
        server.completions.shape = "no final frame"
        async with opened(server, PUMP) as bot:
            events = await events_of(bot)
    assert last(events, "end")["full_answer"] == BEST
    assert last(events, "citations") is None


async def test_markers_are_checked_however_they_are_written() -> None:
    text = "24 months 【ID:0】, cleaned (ID: 1) [ID:44] `x[ID:0]`. ##2$$"
    with RagflowServer() as server:
        server.completions.text = text
        async with opened(server, PUMP) as bot:
            events = await events_of(bot)
    assert last(events, "end")["full_answer"] == "24 months [1], cleaned [2] `x[ID:0]`. [3]"
    assert [citation["number"] for citation in last(events, "citations")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        pytest.param("error text", "AUTH_ERROR", id="error as the answer"),
        pytest.param("code 500", "Miss parameter", id="error as a frame"),
        pytest.param("html", "not its JSON", id="a page"),
        pytest.param("html 502", "502", id="a proxy's error page"),
        pytest.param("json error", "Session not found", id="JSON, not a stream"),
        pytest.param("stalls", "no answer within", id="silence"),
    ],
)
@pytest.mark.parametrize("responds", [True, False], ids=["as it is", "as the source"])
async def test_an_error_is_no_answer(shape: str, reason: str, responds: bool) -> None:
    with RagflowServer(only_pump()) as server:
        server.completions.shape = shape
        seconds = 0.2 if shape == "stalls" else 30
        async with opened(server, PUMP, silence_seconds=seconds, responds=responds) as bot:
            events = await events_of(bot)
    end = last(events, "end")
    assert "cannot be reached" in end["full_answer"]
    (degraded,) = end["metadata"]["degraded"]
    assert (degraded["part"], reason in degraded["reason"]) == ("knowledge", True)
    assert "ERROR**" not in repr(events)
    assert last(events, "citations") is None


@pytest.mark.parametrize("shape", ["error after text", "error in text", "cut", "reset"])
async def test_half_an_answer_is_no_source(shape: str) -> None:
    with RagflowServer(only_pump()) as server:
        server.completions.shape = shape
        async with opened(server, PUMP, responds=False) as bot:
            events = await events_of(bot)
    assert "cannot be reached" in last(events, "end")["full_answer"]
    assert "warranty" not in said(events)


@pytest.mark.parametrize("failure", ["error text", "silent"])
async def test_the_others_are_asked_where_it_has_no_answer(failure: str) -> None:
    with RagflowServer() as server:
        pump = server.chats[-1]
        answers = server.completions
        answers.shape = failure
        answers.shape_of[server.chats[0].id] = "deltas"
        async with opened(server, PUMP, OURS) as bot:
            events = await events_of(bot, "How many days of 年假 does the X200 pump have?")
        assert {request.path.split("/")[4] for request in server.asked("/completions")} > {
            pump.id
        }
    end = last(events, "end")
    assert end["full_answer"] == "From the others [1]."
    assert end["metadata"]["assistants"][0] == "X200 manual"
    assert "员工手册" in end["metadata"]["assistants"]
    assert bool(end["metadata"]["degraded"]) is (failure == "error text")


@pytest.mark.parametrize("shape", ["error after text", "error in text", "cut", "reset"])
async def test_an_answer_that_breaks_is_an_error(shape: str) -> None:
    with RagflowServer() as server:
        server.completions.shape = shape
        async with opened(server, PUMP) as bot:
            events = await events_of(bot)
            (turn,) = await bot.turns("s")
    error = last(events, "error")
    assert error["code"] == "knowledge_unavailable"
    assert error["partial_answer"] == turn.answer
    assert BEST.startswith(turn.answer.strip())
    assert turn.answer
    assert (turn.status, turn.record["citations"]) == ("failed", [])
    assert last(events, "end") is None


@pytest.mark.parametrize("shape", ["empty twice", "silent", "nothing"])
@pytest.mark.parametrize("responds", [True, False], ids=["as it is", "as the source"])
async def test_nothing_found_is_said_in_our_words(shape: str, responds: bool) -> None:
    with RagflowServer(only_pump(empty_response=NOTHING)) as server:
        server.completions.shape = shape
        script = (UNKNOWN, Said(["Nothing was found."]))
        async with opened(server, *script, responds=responds) as bot:
            events = await events_of(bot, "Quantum chess?")
            (system, *_, asked) = model_of(bot).prompts[-1]
    assert last(events, "end")["full_answer"] == "Nothing was found."
    assert last(events, "end")["metadata"]["degraded"] == []
    assert "nothing about it was found" in asked.text
    assert NOTHING not in system.text + asked.text + said(events)


async def test_ragflow_is_asked_the_question_that_stands_alone() -> None:
    follow_up = Said(
        call=Call(
            "knowledge_base", f'{{"assistants": ["X200 manual"], "question": "{QUESTION}"}}'
        )
    )
    with RagflowServer() as server:
        async with opened(server, PUMP, follow_up) as bot:
            await events_of(bot)
            events = await events_of(bot, "And how long does it last?")
            turns = await bot.turns("s")
        asked = [request.json()["question"] for request in server.asked("/completions")]
    assert asked == [QUESTION, QUESTION]
    assert last(events, "metadata")["enhanced_query"] == QUESTION
    assert [turn.question for turn in turns] == [QUESTION, "And how long does it last?"]


@pytest.mark.parametrize(
    ("choices", "script"),
    [
        pytest.param({}, [UNKNOWN, OURS], id="none of several is meant"),
        pytest.param({"assistants": ["员工手册", "X200 manual"]}, [UNKNOWN, OURS], id="two"),
    ],
)
async def test_answers_of_several_are_put_together_by_our_model(
    choices: dict[str, Any], script: Sequence[Said]
) -> None:
    with RagflowServer() as server:
        async with opened(server, *script) as bot:
            events = await events_of(bot, "How long does the warranty last?", **choices)
            prompt = model_of(bot).asked(-1)
        assert len(server.asked("/completions")) == (2 if choices else 3)
    assert last(events, "end")["full_answer"] == "From the others [1]."
    assert BEST in prompt


async def test_an_assistant_that_the_caller_names_answers_alone() -> None:
    with RagflowServer() as server:
        async with opened(server) as bot:
            events = await events_of(bot, assistants=["X200 manual"], route="knowledge_base")
    assert said(events) == f"{BEST} [1]"


async def test_where_the_one_that_the_caller_names_fails_the_others_are_asked() -> None:
    with RagflowServer() as server:
        server.completions.shape = "error text"
        server.completions.shape_of[server.chats[0].id] = "deltas"
        async with opened(server, OURS) as bot:
            events = await events_of(
                bot, "年假 X200", assistants=["X200 manual"], route="knowledge_base"
            )
    end = last(events, "end")
    assert end["full_answer"] == "From the others [1]."
    assert "员工手册" in end["metadata"]["assistants"]
    assert "assistants" in {each["part"] for each in end["metadata"]["degraded"]}


async def test_json_is_asked_of_our_model() -> None:
    schema = {"type": "object", "properties": {"months": {"type": "integer"}}}
    with RagflowServer() as server:
        async with opened(server, PUMP) as bot:
            events = await events_of(bot, response_schema=schema)
    assert last(events, "error")["code"] == "model_unsupported"  # the scripted one gives none
    assert said(events) == ""


async def test_a_stopped_answer_is_kept_and_ragflow_is_left() -> None:
    with RagflowServer() as server:
        server.completions.shape = "stalls later"
        async with opened(server, PUMP) as bot:
            async with aclosing(bot.stream(QUESTION, session_id="s")) as events:
                async for event in events:
                    if event["type"] == "content":
                        break
            (turn,) = await bot.turns("s")
        for _ in range(2000):
            if server.completions.abandoned and server.completions.deleted:
                break
            await asyncio.sleep(0.01)
        assert server.completions.abandoned == 1
        assert server.completions.deleted == list(server.completions.sessions)
    assert (turn.status, turn.record["citations"]) == ("stopped", [])
    assert turn.answer
    assert BEST.startswith(turn.answer.strip())


async def test_an_answer_ends_with_the_time_of_its_turn() -> None:
    with RagflowServer() as server:
        server.completions.shape = "stalls later"
        async with opened(server, PUMP, turn_seconds=0.5) as bot:
            events = await events_of(bot)
            (turn,) = await bot.turns("s")
        assert len(asyncio.all_tasks()) == 1
    assert last(events, "error")["code"] == "deadline"
    assert turn.status == "failed"


async def test_the_words_stream_as_those_of_any_model() -> None:
    with RagflowServer() as server:
        async with opened(server, PUMP) as bot:
            graph: Any = bot.graph
            pieces = [
                message
                async for message, _ in graph.astream(
                    {"messages": [HumanMessage(QUESTION)]},
                    context=Context(session_id="s"),
                    stream_mode="messages",
                )
                if message.type in {"ai", "AIMessageChunk"}
            ]
    texts = [message.text for message in pieces if message.text]
    assert len(texts) > 1
    assert "".join(texts[:2]).startswith(BEST)
    assert len({message.id for message in pieces}) == 1
    assert isinstance(pieces[-1], AIMessage)


async def test_nobody_says_that_there_is_nothing_while_one_was_not_reached() -> None:
    with RagflowServer() as server:
        pump, *_ = server.chats[::-1]
        server.completions.shape_of[pump.id] = "error text"
        async with opened(server, PUMP) as bot:
            events = await events_of(bot, "Quantum chess?")
    assert "cannot be reached" in last(events, "end")["full_answer"]


@pytest.mark.parametrize("mode", ["retrieval", "assistant", "answer"])
async def test_every_mode_works_without_a_model_of_ours(mode: str, tmp_path: Path) -> None:
    with RagflowServer() as server:
        settings = Settings.model_validate(
            {
                "chatbot_data_dir": tmp_path,
                "ragflow_base_url": server.url,
                "ragflow_api_key": SecretStr(server.key),
                "ragflow_mode": mode,
            }
        )
        async with open_chatbot(settings) as bot:
            found = await bot.ask(QUESTION, session_id="s")
            thanks = await bot.ask("Thanks, have a nice day!", session_id="s")
        asked = len(server.asked("/completions"))
    assert "24 months" in found.text
    assert [citation["number"] for citation in found.citations] == [1]
    assert thanks.metadata["intent"] == "general_chat"
    assert asked == (0 if mode == "retrieval" else 1)  # nothing is asked of a model on a guess
