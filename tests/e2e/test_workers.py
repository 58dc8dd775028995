"""Two workers over one MongoDB: 200 users at once, and answers that any worker follows."""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import jwt
import pytest

from tests.servers.chatbot import running_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call
from tests.servers.mongod import Mongod

pytestmark = pytest.mark.timeout(300)

SECRET = "a secret that is long enough for HS256"
USERS = 200
TURNS = 2


def think(request: ChatRequest) -> Script:
    """Answer each question with what nobody else's answer has in it."""
    if request.tools:
        return call("general_chat")
    if "slowly" in request.question:
        return answer([f"word{number} " for number in range(60)], delay=0.05)
    return answer([f"{piece} " for piece in f"You asked {request.question} indeed".split()])


@dataclass(frozen=True, kw_only=True)
class Running:
    url: str


@pytest.fixture(name="running", scope="module")
def two_workers(mongod: Mongod, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with ModelServer(think) as model:
        settings = {
            "MONGODB_URI": mongod.uri,
            "MONGODB_DB": "workers",
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": model.base_url,
            "LLM_MODEL": "scripted",
            "JWT_SECRET": SECRET,
            "OPERATORS": "operator",
            "LOG_LEVEL": "WARNING",
        }
        folder = tmp_path_factory.mktemp("workers")
        with running_chatbot(folder, "serve", "--workers", "2", settings=settings) as url:
            yield Running(url=url)


def signed_in(user: str) -> dict[str, str]:
    claims = {"sub": user, "exp": time.time() + 600}
    return {"Authorization": f"Bearer {jwt.encode(claims, SECRET, algorithm='HS256')}"}


def client(running: Running) -> httpx.AsyncClient:
    # Without connections that stay open: each request reaches whichever worker takes it.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(base_url=running.url, timeout=120, limits=limits)


async def events_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line async for line in response.aiter_lines()]
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def converse(http: httpx.AsyncClient, user: str) -> list[str]:
    """Ask in one session, one after the other, and return the answers."""
    answers = []
    for number in range(TURNS):
        body = {"question": f"question-{number}-of-{user}", "session_id": "mine"}
        async with http.stream(
            "POST", "/api/chat", json=body, headers=signed_in(user)
        ) as response:
            assert response.status_code == 200, await response.aread()
            events = await events_of(response)
        assert events[-1]["type"] == "end", events[-1]
        answers.append(events[-1]["data"]["full_answer"].strip())
    return answers


async def test_many_users_at_once_each_get_their_own(running: Running) -> None:
    users = [f"user-{number}" for number in range(USERS)]
    async with client(running) as http:
        answers = await asyncio.gather(*(converse(http, user) for user in users))
        for user, said in zip(users, answers, strict=True):
            asked = [f"question-{number}-of-{user}" for number in range(TURNS)]
            assert said == [f"You asked {question} indeed" for question in asked]
        for user in users[::20]:
            read = await http.get("/api/sessions/mine", headers=signed_in(user))
            turns = read.json()["turns"]
            assert [turn["question"] for turn in turns] == [
                f"question-{number}-of-{user}" for number in range(TURNS)
            ]
            assert {turn["status"] for turn in turns} == {"complete"}


async def test_questions_at_once_in_one_session_are_answered_in_turn(running: Running) -> None:
    headers = signed_in("hasty")
    async with client(running) as http:

        async def ask(number: int) -> str:
            body = {"question": f"question-{number}-of-hasty", "session_id": "one"}
            async with http.stream("POST", "/api/chat", json=body, headers=headers) as response:
                return str((await events_of(response))[-1]["type"])

        ends = await asyncio.gather(*map(ask, range(4)))
        turns = (await http.get("/api/sessions/one", headers=headers)).json()["turns"]
    assert ends == ["end"] * 4
    assert len(turns) == 4
    for turn in turns:
        assert turn["answer"].strip() == f"You asked {turn['question']} indeed"


async def counted(http: httpx.AsyncClient) -> float:
    """Return how many turns were completed, as whichever worker takes the request tells."""
    reply = await http.get("/api/metrics", headers=signed_in("operator"))
    assert reply.status_code == 200
    lines = [line.rsplit(" ", 1) for line in reply.text.splitlines()]
    return sum(
        float(value)
        for name, value in lines
        if name.startswith("chatbot_turns_total") and 'status="complete"' in name
    )


async def test_metrics_are_the_sum_of_the_workers(running: Running) -> None:
    users = [f"counted-{number}" for number in range(10)]
    async with client(running) as http:
        before = await counted(http)
        await asyncio.gather(*(converse(http, user) for user in users))
        told = {await counted(http) for _ in range(12)}
    assert told == {before + TURNS * len(users)}


async def test_answer_is_followed_and_stopped_through_any_worker(running: Running) -> None:
    headers = signed_in("mover")
    body = {"question": "slowly", "session_id": "moved", "on_disconnect": "continue"}
    async with client(running) as http:
        async with http.stream("POST", "/api/chat", json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                if "word3" in line:
                    break
        address = "/api/sessions/moved/events"
        following = [asyncio.create_task(_followed(http, address, headers)) for _ in range(4)]
        await asyncio.sleep(0.5)
        await http.post("/api/sessions/moved/stop", headers=headers)
        followed = await asyncio.gather(*following)
        (turn,) = (await http.get("/api/sessions/moved", headers=headers)).json()["turns"]

    assert turn["status"] == "stopped"
    for events in followed:
        said = "".join(event["data"] for event in events if event["type"] == "content")
        assert said.startswith("word0 word1 ")
        assert events[-1]["data"]["finish_reason"] == "stopped"
        assert events[-1]["data"]["full_answer"].strip() == turn["answer"].strip()


async def _followed(
    http: httpx.AsyncClient, address: str, headers: dict[str, str]
) -> list[dict[str, Any]]:
    async with http.stream("GET", address, headers=headers) as response:
        assert response.status_code == 200
        return await events_of(response)
