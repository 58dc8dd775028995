"""Turns of LangGraph's clients: asked again, edited, two at once, and a server that dies."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError

from tests.servers.chatbot import chatbot_server, running_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call

pytestmark = pytest.mark.timeout(300)

WORDS = 40
numbers = count(1)


def reply(request: ChatRequest) -> Script:
    """Answer each question with a number of its own, slowly where it says so."""
    if request.tools:
        return call("general_chat")
    said = f"answer {next(numbers)}"
    if "slowly" in request.question:
        words = 3 * WORDS if "very slowly" in request.question else WORDS
        return answer([f"{said} ", *(f"word{n} " for n in range(words))], delay=0.05)
    return answer(said)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[str]:
    settings = {
        "OPENAI_BASE_URL": model.base_url,
        "LLM_MODEL": "scripted",
        "SESSION_WAIT_SECONDS": "1",
    }
    with running_chatbot(tmp_path_factory.mktemp("turns"), "dev", settings=settings) as url:
        yield url


@pytest.fixture
async def client(server: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server) as opened:
        yield opened


@pytest.fixture
async def thread(client: LangGraphClient) -> str:
    thread_id: str = (await client.threads.create())["thread_id"]
    return thread_id


def said(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


async def ask(client: LangGraphClient, thread: str, question: str) -> str:
    state: Any = await client.runs.wait(thread, "chatbot", input=said(question))
    text: str = state["messages"][-1]["content"]
    return text


async def turns(server: str, session_id: str) -> list[tuple[str, str, str]]:
    """Return question, answer and status of the session's turns that count."""
    async with httpx.AsyncClient(base_url=server, timeout=30) as http:
        found = (await http.get(f"/api/sessions/{session_id}")).json()["turns"]
    return [(turn["question"], turn["answer"].strip(), turn["status"]) for turn in found]


def prompt(model: ModelServer) -> list[str]:
    """Return the last prompt without its instructions, after a look at whose turn it was."""
    messages = model.seen[-1].messages[1:]
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    return [str(message["content"]).strip() for message in messages]


async def before(client: LangGraphClient, thread: str, message: int) -> str:
    """Return the checkpoint that a chat client goes back to before the n-th message."""
    history: list[Any] = await client.threads.get_history(thread, limit=100)
    seen = [state for state in history if len(state["values"].get("messages", [])) > message]
    checkpoint_id: str = seen[-1]["parent_checkpoint"]["checkpoint_id"]
    return checkpoint_id


async def test_a_client_asks_again(
    client: LangGraphClient, server: str, model: ModelServer, thread: str
) -> None:
    one, two = await ask(client, thread, "one"), await ask(client, thread, "two")
    for _ in range(2):
        point = await before(client, thread, 3)
        state: Any = await client.runs.wait(thread, "chatbot", input=None, checkpoint_id=point)
        again = state["messages"][-1]["content"]
        assert again not in {one, two}
        assert [message["content"] for message in state["messages"]] == [
            *("one", one, "two", again)
        ]
        assert prompt(model) == ["one", one, "two"]
        assert await turns(server, thread) == [
            ("one", one, "complete"),
            ("two", again, "complete"),
        ]
    three = await ask(client, thread, "three")
    assert prompt(model) == ["one", one, "two", again, "three"]
    assert (await turns(server, thread))[2:] == [("three", three, "complete")]


async def test_a_client_edits_an_earlier_question(
    client: LangGraphClient, server: str, model: ModelServer, thread: str
) -> None:
    one = await ask(client, thread, "one")
    for question in ("two", "three"):
        await ask(client, thread, question)
    point = await before(client, thread, 2)
    state: Any = await client.runs.wait(
        thread, "chatbot", input=said("another two"), checkpoint_id=point
    )
    edited = state["messages"][-1]["content"]
    assert [message["content"] for message in state["messages"]] == [
        *("one", one, "another two", edited)
    ]
    assert prompt(model) == ["one", one, "another two"]
    assert await turns(server, thread) == [
        ("one", one, "complete"),
        ("another two", edited, "complete"),
    ]


@pytest.mark.parametrize("strategy", ["enqueue", "interrupt", "rollback"])
async def test_a_second_question_while_the_first_is_answered(
    client: LangGraphClient, server: str, model: ModelServer, thread: str, strategy: Any
) -> None:
    slow = f"slowly, {strategy}"
    await client.runs.create(thread, "chatbot", input=said(slow))
    await answering(model, slow)
    await client.runs.wait(
        thread, "chatbot", input=said("and then?"), multitask_strategy=strategy
    )
    kept = await turns(server, thread)
    assert [question for question, _, _ in kept] == [slow, "and then?"]
    whole = strategy == "enqueue"
    assert [status for *_, status in kept] == ["complete" if whole else "stopped", "complete"]
    assert prompt(model) == [slow, kept[0][1], "and then?"]
    assert (f"word{WORDS - 1}" in kept[0][1]) == whole


async def test_a_second_question_may_be_rejected(
    client: LangGraphClient, server: str, model: ModelServer, thread: str
) -> None:
    first = await client.runs.create(thread, "chatbot", input=said("slowly, alone"))
    await answering(model, "slowly, alone")
    with pytest.raises(ConflictError):
        await client.runs.create(
            thread, "chatbot", input=said("and then?"), multitask_strategy="reject"
        )
    await client.runs.join(thread, first["run_id"])
    assert [status for *_, status in await turns(server, thread)] == ["complete"]


async def test_a_session_that_two_threads_share_has_one_turn_at_a_time(
    client: LangGraphClient, server: str, model: ModelServer
) -> None:
    context = {"session_id": "shared"}
    asked = client.runs.wait(None, "chatbot", input=said("very slowly"), context=context)
    first = asyncio.create_task(asked)
    await answering(model, "very slowly")
    events = [
        part.data
        async for part in client.runs.stream(
            None, "chatbot", input=said("me, too"), context=context, stream_mode="custom"
        )
        if part.event == "custom"
    ]
    assert events[-1]["type"] == "error"
    error = events[-1]["data"]
    assert (error["code"], error["retryable"], error["retry_after"]) == ("busy", True, 1)
    await first
    assert [question for question, *_ in await turns(server, "shared")] == ["very slowly"]


async def answering(model: ModelServer, question: str) -> None:
    """Return when the model has begun to answer the question."""

    def begun() -> bool:
        return any(not each.tools and each.question == question for each in model.seen)

    async with asyncio.timeout(30):
        while not begun():  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.3)  # a few words


async def test_a_server_that_dies_answers_its_run_again_and_keeps_it_once(
    tmp_path: Path,
) -> None:
    hurry = False

    def reply_later(request: ChatRequest) -> Script:
        if request.tools:
            return call("general_chat")
        if request.question != "two" or hurry:
            return answer(f"answer to {request.question}")
        return answer([f"word{n} " for n in range(2000)], delay=0.02)

    with ModelServer(reply_later) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        with chatbot_server(tmp_path, "dev", settings=settings) as dying:
            async with get_client(url=dying.url) as client:
                thread = (await client.threads.create())["thread_id"]
                await ask(client, thread, "one")
                run = await client.runs.create(thread, "chatbot", input=said("two"))
                await answering(model, "two")
                await flushed(tmp_path)
                dying.kill()
        hurry = True
        # Its messages are lost as well: what is kept must not depend on them.
        for file in (tmp_path / ".langgraph_api").glob("*checkpoint*"):
            file.unlink()
        with chatbot_server(tmp_path, "dev", settings=settings) as again:
            async with get_client(url=again.url) as client:
                await client.runs.join(thread, run["run_id"])
                assert await turns(again.url, thread) == [
                    ("one", "answer to one", "complete"),
                    ("two", "answer to two", "complete"),
                ]
                assert prompt(model) == ["one", "answer to one", "two"]
                await ask(client, thread, "three")
                assert prompt(model)[2:] == ["two", "answer to two", "three"]
                assert len(await turns(again.url, thread)) == 3


async def flushed(folder: Path) -> None:
    """Return when the server has written what it would find again, which it does at times."""
    start = time.time()
    file = folder / ".langgraph_api" / ".langgraph_ops.pckl"
    async with asyncio.timeout(60):
        while not file.exists() or file.stat().st_mtime < start:  # noqa: ASYNC110 - another process writes
            await asyncio.sleep(0.1)
