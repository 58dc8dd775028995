"""Users at LangGraph's own routes: their threads, their history, their assistants."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError, PermissionDeniedError, RateLimitError

from serving.auth.keys import create_key
from tests.servers.chatbot import running_chatbot

pytestmark = pytest.mark.timeout(300)

QUESTION = "Who wrote Walden?"
PER_MINUTE = 8


@dataclass(frozen=True, kw_only=True)
class Guarded:
    url: str
    keys: Path

    @asynccontextmanager
    async def client(
        self, user: str, assistants: list[str] | None = None
    ) -> AsyncIterator[LangGraphClient]:
        key = create_key(self.keys, user, assistants=assistants)
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=self.url) as http:
            await _known(http, headers)
        async with get_client(url=self.url, headers=headers) as opened:
            yield opened


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    keys = folder / "keys"
    keys.mkdir()
    settings = {"AUTH_KEYS_DIR": str(keys), "TURNS_PER_MINUTE": str(PER_MINUTE)}
    with running_chatbot(folder, "dev", settings=settings) as url:
        yield Guarded(url=url, keys=keys)


async def ask(client: LangGraphClient, thread: str, **options: Any) -> list[dict[str, Any]]:
    graph_input: dict[str, Any] = {"messages": [{"role": "user", "content": QUESTION}]}
    stream = client.runs.stream(
        thread, "chatbot", input=graph_input, stream_mode="custom", **options
    )
    return [part.data async for part in stream if part.event == "custom"]


def data_of(events: list[dict[str, Any]], kind: str) -> Any:
    return next(event["data"] for event in events if event["type"] == kind)


async def test_nobody_gets_in_without_a_key(guarded: Guarded) -> None:
    async with httpx.AsyncClient(base_url=guarded.url) as anybody:
        for headers in ({}, {"Authorization": "Bearer cb_1_x"}, {"x-auth-scheme": "langsmith"}):
            response = await anybody.post("/threads", json={}, headers=headers)
            assert response.status_code == 401, headers
            response = await anybody.post(
                "/runs/wait",
                json={"assistant_id": "chatbot", "input": {"messages": []}},
                headers=headers,
            )
            assert response.status_code == 401, headers


async def test_threads_and_what_was_said_belong_to_one_user(guarded: Guarded) -> None:
    async with guarded.client("ann") as ann, guarded.client("bob") as bob:
        thread = (await ann.threads.create())["thread_id"]
        # The identity is the key's, whatever the run claims.
        events = await ask(ann, thread, context={"user_id": "bob"})
        assert data_of(events, "end")["full_answer"]

        for attempt in (
            bob.threads.get(thread),
            bob.threads.get_state(thread),
            bob.threads.delete(thread),
            bob.runs.list(thread),
            bob.runs.create(thread, "chatbot", input={"messages": []}),
        ):
            with pytest.raises(NotFoundError):
                await attempt
        assert await bob.threads.search() == []
        assert [each["thread_id"] for each in await ann.threads.search()] == [thread]

        async with httpx.AsyncClient(base_url=guarded.url) as http:
            bob_headers = {"X-API-Key": create_key(guarded.keys, "bob")}
            ann_headers = {"X-API-Key": create_key(guarded.keys, "ann")}
            await _known(http, bob_headers)
            mine = await http.get(f"/api/sessions/{thread}", headers=ann_headers)
            not_mine = await http.get(f"/api/sessions/{thread}", headers=bob_headers)
        assert mine.json()["turns"][0]["question"] == QUESTION
        assert not_mine.status_code == 404


async def test_same_session_of_two_users_is_two(guarded: Guarded) -> None:
    async with guarded.client("eve") as eve, guarded.client("dan") as dan:
        for client in (eve, dan):
            thread = (await client.threads.create())["thread_id"]
            await ask(client, thread, context={"session_id": "shared"})
        async with httpx.AsyncClient(base_url=guarded.url) as http:
            for user in ("eve", "dan"):
                headers = {"X-API-Key": create_key(guarded.keys, user)}
                await _known(http, headers)
                read = await http.get("/api/sessions/shared", headers=headers)
                assert len(read.json()["turns"]) == 1


async def test_key_for_some_assistants_asks_no_other(guarded: Guarded) -> None:
    async with guarded.client("reader", ["No such"]) as client:
        thread = (await client.threads.create())["thread_id"]
        events = await ask(client, thread, context={"route": "knowledge_base"})
    assert not any(event["type"] == "citations" for event in events)
    degraded = data_of(events, "metadata")["degraded"]
    assert [each["part"] for each in degraded] == ["knowledge"]


async def test_users_do_not_change_the_server(guarded: Guarded) -> None:
    async with guarded.client("ann") as ann:
        known = await ann.assistants.search()
        assert [each["graph_id"] for each in known] == ["chatbot"]
        with pytest.raises(PermissionDeniedError):
            await ann.assistants.create("chatbot")
        with pytest.raises(PermissionDeniedError):
            await ann.assistants.delete(known[0]["assistant_id"])


async def _known(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    """Wait until the server has read the key."""
    for _ in range(200):
        if (await http.get("/api/me", headers=headers)).status_code == 200:
            return
        await asyncio.sleep(0.1)


async def test_runs_count_with_the_turns_of_a_minute(guarded: Guarded) -> None:
    async with guarded.client("often") as often, guarded.client("rarely") as rarely:
        thread = (await often.threads.create())["thread_id"]
        for _ in range(PER_MINUTE):
            await ask(often, thread)
        with pytest.raises(RateLimitError, match=f"{PER_MINUTE} questions a minute") as refused:
            await ask(often, thread)
        assert 0 < int(refused.value.response.headers["Retry-After"]) <= 60
        other = (await rarely.threads.create())["thread_id"]
        assert data_of(await ask(rarely, other), "end")["full_answer"]
