"""Two servers of aegra over the same databases: LangGraph's clients and our routes."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import jwt
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, PermissionDeniedError

from tests.servers.aegra import running_aegra
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call
from tests.servers.mongod import Mongod
from tests.servers.postgres import running_postgres
from tests.servers.redis import running_redis

pytestmark = pytest.mark.timeout(300)

SECRET = "a secret that is long enough for HS256"
SLOW_WORDS = 200


def think(request: ChatRequest) -> Script:
    """Answer with the question, slowly where it says so."""
    if request.tools:
        return call("general_chat")
    if "slowly" in request.question:
        return answer([f"word{number} " for number in range(SLOW_WORDS)], delay=0.05)
    return answer([f"{piece} " for piece in f"You asked {request.question} indeed".split()])


def signed_in(user: str) -> dict[str, str]:
    claims = {"sub": user, "exp": time.time() + 600}
    return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, algorithm='HS256')}"}


@dataclass(frozen=True, kw_only=True)
class Servers:
    urls: list[str]
    model: ModelServer


@pytest.fixture(scope="module")
def servers(mongod: Mongod, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        model = stack.enter_context(ModelServer(think))
        settings = {
            "DATABASE_URL": stack.enter_context(running_postgres()),
            "REDIS_URL": stack.enter_context(running_redis()),
            "MONGODB_URI": mongod.uri,
            "MONGODB_DB": "aegra",
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": model.base_url,
            "LLM_MODEL": "scripted",
            "JWT_SECRET": SECRET,
        }
        # One after the other: the first makes the tables of an empty database.
        urls = [
            stack.enter_context(running_aegra(tmp_path_factory.mktemp(name), settings))
            for name in ("first", "second")
        ]
        yield Servers(urls=urls, model=model)


@pytest.fixture(name="ann")
async def clients_of_ann(servers: Servers) -> AsyncIterator[list[LangGraphClient]]:
    """One client for each of the servers."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(get_client(url=url, headers=signed_in("ann")))
            for url in servers.urls
        ]


@pytest.fixture
async def thread(ann: list[LangGraphClient]) -> str:
    thread_id: str = (await ann[0].threads.create())["thread_id"]
    return thread_id


def said(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


async def ask(
    client: LangGraphClient, thread: str, question: str, **options: Any
) -> tuple[list[dict[str, Any]], str]:
    """Return our events, and the text that came as messages."""
    events, text = [], ""
    modes: Any = ["custom", "messages-tuple", "updates"]
    async for part in client.runs.stream(
        thread, "chatbot", input=said(question), stream_mode=modes, **options
    ):
        if part.event == "custom":
            events.append(part.data)
        elif part.event == "messages":
            message: Any = part.data[0]
            text += message["content"]
    return events, text.strip()


async def turns(url: str, session_id: str, user: str = "ann") -> list[dict[str, Any]]:
    async with httpx.AsyncClient(base_url=url, headers=signed_in(user), timeout=30) as http:
        found: list[dict[str, Any]] = (await http.get(f"/api/sessions/{session_id}")).json()[
            "turns"
        ]
    return found


async def test_a_conversation_goes_on_at_the_other_server(
    servers: Servers, ann: list[LangGraphClient], thread: str
) -> None:
    for number, (client, question) in enumerate(zip(ann, ("one", "two"), strict=True), 1):
        events, text = await ask(client, thread, question)
        assert text == f"You asked {question} indeed"
        assert [event["type"] for event in events][-2:] == ["usage", "end"]
        assert events[-1]["data"]["full_answer"].strip() == text
        state: Any = await client.threads.get_state(thread)
        assert list(state["values"]) == ["messages"]
        assert len(state["values"]["messages"]) == 2 * number
    prompt = [message["content"] for message in servers.model.seen[-1].messages[1:]]
    assert [text.strip() for text in prompt] == ["one", "You asked one indeed", "two"]
    assert [turn["question"] for turn in await turns(servers.urls[0], thread)] == ["one", "two"]


async def test_questions_at_once_in_one_session_are_answered_in_turn(
    servers: Servers, ann: list[LangGraphClient]
) -> None:
    """aegra runs them all at once, whatever strategy a client names: the lease does not."""
    threads = [(await client.threads.create())["thread_id"] for client in ann * 2]
    context = {"session_id": "hasty"}
    asked = [
        ask(client, thread, f"question-{number}", context=context)
        for number, (client, thread) in enumerate(zip(ann * 2, threads, strict=True))
    ]
    for number, (events, text) in enumerate(await asyncio.gather(*asked)):
        assert text == f"You asked question-{number} indeed"
        assert events[-1]["type"] == "end"
    kept = await turns(servers.urls[1], "hasty")
    assert sorted(turn["question"] for turn in kept) == [f"question-{n}" for n in range(4)]
    last = servers.model.seen[-1].messages[1:]
    assert [message["role"] for message in last] == ["user", "assistant"] * 3 + ["user"]


async def test_cancelled_at_the_other_server_it_is_kept_and_the_next_turn_works(
    servers: Servers, ann: list[LangGraphClient], thread: str
) -> None:
    run = await ann[0].runs.create(
        thread, "chatbot", input=said("slowly"), stream_mode="custom"
    )
    async for part in ann[1].runs.join_stream(thread, run["run_id"], stream_mode="custom"):
        data: Any = part.data
        if part.event == "custom" and "word2" in str(data["data"]):
            break
    await ann[1].runs.cancel(thread, run["run_id"], wait=True)
    events, text = await ask(ann[0], thread, "next")
    assert events[-1]["type"] == "end"
    assert text == "You asked next indeed"
    stopped, following = await turns(servers.urls[0], thread)
    assert stopped["status"] == "stopped"
    assert stopped["answer"].startswith("word0 word1 word2")
    assert following["status"] == "complete"


async def test_a_client_asks_again_from_a_checkpoint(
    servers: Servers, ann: list[LangGraphClient], thread: str
) -> None:
    await ask(ann[0], thread, "one")
    await ask(ann[0], thread, "two")
    history: list[Any] = await ann[1].threads.get_history(thread, limit=100)
    seen = [state for state in history if len(state["values"].get("messages", [])) > 3]
    point = seen[-1]["parent_checkpoint"]["checkpoint_id"]
    await ann[1].runs.wait(thread, "chatbot", input=None, checkpoint_id=point)
    kept = await turns(servers.urls[0], thread)
    assert [turn["question"] for turn in kept] == ["one", "two"]
    prompt = [message["content"] for message in servers.model.seen[-1].messages[1:]]
    assert [text.strip() for text in prompt] == ["one", "You asked one indeed", "two"]


async def test_threads_and_sessions_belong_to_one_user(
    servers: Servers, ann: list[LangGraphClient], thread: str
) -> None:
    # The identity is the token's, whatever the run claims.
    await ask(ann[0], thread, "mine", context={"user_id": "bob"})
    async with get_client(url=servers.urls[1], headers=signed_in("bob")) as bob:
        for attempt in (
            bob.threads.get(thread),
            bob.threads.get_state(thread),
            bob.threads.get_history(thread),
            bob.threads.delete(thread),
            bob.runs.create(thread, "chatbot", input=said("yours")),
        ):
            with pytest.raises(NotFoundError):
                await attempt
        with pytest.raises(PermissionDeniedError):
            await bob.assistants.create("chatbot")
        assert await bob.threads.search() == []
        assert await bob.runs.list(thread) == []
    address = f"{servers.urls[1]}/api/sessions/{thread}"
    async with httpx.AsyncClient(timeout=30) as http:
        assert (await http.get(address, headers=signed_in("ann"))).status_code == 200
        assert (await http.get(address, headers=signed_in("bob"))).status_code == 404


async def test_nobody_gets_in_without_a_token_or_from_another_site(servers: Servers) -> None:
    evil = {"Origin": "https://evil.example"}
    async with httpx.AsyncClient(base_url=servers.urls[0], timeout=30) as http:
        assert (await http.get("/")).text.startswith("<!doctype html>")
        assert (await http.get("/health")).json() == {"status": "ok"}
        assert (await http.get("/api/sessions")).status_code == 401
        assert (await http.get("/api/sessions", headers=signed_in("ann"))).status_code == 200
        assert (await http.post("/threads", json={})).status_code == 401
        reply = await http.get("/api/me", headers={**signed_in("ann"), **evil})
        assert reply.status_code == 403
        for path in ("/threads/search", "/api/chat"):
            asking = {**evil, "Access-Control-Request-Method": "POST"}
            reply = await http.options(path, headers=asking)
            assert "access-control-allow-origin" not in reply.headers
