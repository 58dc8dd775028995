"""A server that dies in the middle of an answer, or stands still, and another one beside it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from chatbot.domain import Session
from chatbot.history.connection import open_client
from chatbot.leases.local import LocalLeases
from chatbot.leases.mongodb import MongoLeases
from chatbot.leases.port import SessionLeases
from chatbot.leases.records import LEASE_SECONDS
from tests.servers.chatbot import ChatbotServer, chatbot_server
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call
from tests.servers.mongod import Mongod

pytestmark = pytest.mark.timeout(300)

LONG, SHORT = "How long is the warranty?", "Thanks!"
WORD_SECONDS = 0.05
SLOW_MACHINE_SECONDS = 10.0


def reply(request: ChatRequest) -> Script:
    if request.tools:
        looks_up = LONG in request.question
        return call("knowledge_base" if looks_up else "general_chat")
    if LONG in request.question:
        return answer(
            ["24 months [1]. ", *(f"word{n} " for n in range(1000))], delay=WORD_SECONDS
        )
    return answer("You are welcome.")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two servers that share their memory, and the model that both ask."""

    one: ChatbotServer
    other: ChatbotServer
    model: ModelServer
    leases: Callable[[], AbstractAsyncContextManager[SessionLeases]]


@asynccontextmanager
async def leases_in_file(folder: Path) -> AsyncIterator[SessionLeases]:
    leases = LocalLeases(folder / "leases.sqlite3")
    yield leases
    await leases.close()


@asynccontextmanager
async def leases_in_mongodb(uri: str, database: str) -> AsyncIterator[SessionLeases]:
    async with open_client(uri) as client:
        yield MongoLeases(client, database=database, collection="chat_history")


@pytest.fixture(params=["one machine", "two machines"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, mongod: Mongod) -> Iterator[Pair]:
    folders = [tmp_path / name for name in ("here", "there")]
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        model = stack.enter_context(ModelServer(reply))
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        if request.param == "one machine":
            folders = folders[:1] * 2
            leases = partial(leases_in_file, folders[0])
        else:
            database = tmp_path.name[-60:]
            settings |= {"MONGODB_URI": mongod.uri, "MONGODB_DB": database}
            leases = partial(leases_in_mongodb, mongod.uri, database)
        for folder in folders:
            folder.mkdir(exist_ok=True)
        servers = [chatbot_server(folder, "serve", settings=settings) for folder in folders]
        one, other = pool.map(stack.enter_context, servers)
        yield Pair(one=one, other=other, model=model, leases=leases)


@asynccontextmanager
async def asking(
    server: ChatbotServer, question: str, session_id: str
) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    body = {"question": question, "session_id": session_id}
    async with (
        httpx.AsyncClient(timeout=60) as http,
        http.stream("POST", f"{server.url}/api/chat", json=body) as response,
    ):
        assert response.status_code == httpx.codes.OK
        lines = response.aiter_lines()
        yield (json.loads(line[5:]) async for line in lines if line.startswith("data:"))


async def goes_on(pair: Pair, session_id: str) -> None:
    """Ask the other server in the session and check that it answers within seconds."""
    start = time.monotonic()
    async with asking(pair.other, SHORT, session_id) as events:
        last = [event async for event in events][-1]
    assert last["data"]["full_answer"] == "You are welcome."
    assert time.monotonic() - start < LEASE_SECONDS + SLOW_MACHINE_SECONDS


async def words_of(events: AsyncIterator[dict[str, Any]], count: int) -> str:
    """Return the next words of an answer."""
    said = ""
    while said.count(" ") < count:
        event = await anext(events)
        said += event["data"] if event["type"] == "content" else ""
    return said


async def noted(pair: Pair, session_id: str, said: str) -> None:
    """Return when the lease has what was said, which it gets each second."""
    session = Session(session_id=session_id)
    async with pair.leases() as leases, asyncio.timeout(30):
        while (turn := await leases.running(session)) is None or said not in turn.answer:  # noqa: ASYNC110 - another process notes it
            await asyncio.sleep(0.05)


async def kept(pair: Pair, session_id: str) -> list[dict[str, Any]]:
    async with httpx.AsyncClient(base_url=pair.other.url, timeout=30) as http:
        found = (await http.get(f"/api/sessions/{session_id}")).json()
        turns: list[dict[str, Any]] = found["turns"]
        return turns


async def test_a_server_stands_still_for_a_while_and_then_dies(pair: Pair) -> None:
    async with (
        asking(pair.one, LONG, "taken") as taken,
        asking(pair.one, LONG, "left") as left,
    ):
        begun, said = await words_of(taken, 40), await words_of(left, 40)
        pair.one.pause()
        await goes_on(pair, "taken")
        pair.one.resume()
        rest = [event async for event in taken]
        assert rest[-1]["data"]["code"] == "taken_over"
        stopped, done = await kept(pair, "taken")
        assert (stopped["status"], done["status"]) == ("stopped", "complete")
        assert stopped["answer"] == rest[-1]["data"]["partial_answer"]
        assert stopped["answer"].startswith(begun)
        check_prompts(pair)

        said += await words_of(left, 40)  # nobody took that session: its answer goes on
        await noted(pair, "left", said)
        pair.one.kill()
    await goes_on(pair, "left")
    dead, done = await kept(pair, "left")
    assert (dead["question"], dead["status"]) == (LONG, "stopped")
    assert (done["question"], done["status"]) == (SHORT, "complete")
    assert dead["answer"].startswith(said)
    assert (dead["intent"], dead["enhanced_query"]) == ("knowledge_base", LONG)
    assert [citation["number"] for citation in dead["citations"]] == [1]
    assert dead["usage"]["first_token_ms"] > 0
    assert check_prompts(pair)[2]["content"] == dead["answer"].strip()


def check_prompts(pair: Pair) -> Sequence[Mapping[str, Any]]:
    """Check that no two messages of the user follow each other, and return the last prompt."""
    for prompt in pair.model.seen[-2:]:
        roles = [message["role"] for message in prompt.messages]
        assert roles == ["system", "user", "assistant", "user"]
    return pair.model.seen[-1].messages
