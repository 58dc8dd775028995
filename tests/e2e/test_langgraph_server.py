import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.servers.chatbot import running_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call

pytestmark = pytest.mark.timeout(300)

QUESTION = "保修期多长？"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_chatbot(tmp_path_factory.mktemp("data"), "dev") as url:
        yield url


@pytest.fixture
async def client(server: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server) as opened:
        yield opened


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def blocks(text: str) -> dict[str, Any]:
    return {"messages": [{"type": "human", "content": [{"type": "text", "text": text}]}]}


async def run_events(
    client: LangGraphClient, thread: str | None, graph_input: dict[str, Any], **options: Any
) -> list[dict[str, Any]]:
    stream = client.runs.stream(
        thread,
        "chatbot",
        input=graph_input,
        stream_mode="custom",
        **options,
    )
    return [part.data async for part in stream if part.event == "custom"]


async def http_events(server: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with (
        httpx.AsyncClient(timeout=30) as http,
        http.stream("POST", f"{server}/api/chat", json=body) as response,
    ):
        assert response.status_code == httpx.codes.OK
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in response.aiter_lines()]
    return [json.loads(line[5:]) for line in lines if line.startswith("data:")]


def comparable(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Return the events without what differs from turn to turn: ids and times."""
    own = {"turn_id", "session_id", "first_token_ms", "total_ms", "timings", "metadata"}
    return [
        (
            event["type"],
            {k: v for k, v in event["data"].items() if k not in own}
            if isinstance(event["data"], dict)
            else event["data"],
        )
        for event in events
    ]


@pytest.mark.parametrize("form", [said, blocks], ids=["a string", "content blocks"])
async def test_a_run_and_our_route_give_the_same_events(
    server: str, client: LangGraphClient, form: Any
) -> None:
    thread = await client.threads.create()
    run = await run_events(client, thread["thread_id"], form(QUESTION))
    session_id = f"http-{form.__name__}"
    http = await http_events(server, {"question": QUESTION, "session_id": session_id})
    assert comparable(run) == comparable(http)
    assert run[-1]["type"] == "end"
    assert "24个月" in run[-1]["data"]["full_answer"]


async def test_a_thread_remembers(client: LangGraphClient) -> None:
    thread = await client.threads.create()
    await run_events(client, thread["thread_id"], said("瓦尔登湖是谁写的？"))
    events = await run_events(client, thread["thread_id"], said("那它的风景怎么样"))
    metadata = next(event["data"] for event in events if event["type"] == "metadata")
    assert metadata["session_id"] == thread["thread_id"]
    assert "瓦尔登湖" in metadata["enhanced_query"]
    state: Any = await client.threads.get_state(thread["thread_id"])
    assert [message["type"] for message in state["values"]["messages"]] == [
        *("human", "ai", "human", "ai")
    ]
    assert list(state["values"]) == ["messages"]


async def test_tokens_come_as_messages_and_the_answer_only_once(
    client: LangGraphClient,
) -> None:
    thread = await client.threads.create()
    ids, text = set(), ""
    async for part in client.runs.stream(
        thread["thread_id"], "chatbot", input=said(QUESTION), stream_mode=["messages-tuple"]
    ):
        if part.event == "messages":
            message: Any = part.data[0]
            ids.add(message["id"])
            text += message["content"]
    assert len(ids) == 1
    state: Any = await client.threads.get_state(thread["thread_id"])
    assert state["values"]["messages"][-1]["id"] == ids.pop()
    assert text.strip() == state["values"]["messages"][-1]["content"].strip()


async def test_the_modes_that_chat_clients_use(client: LangGraphClient) -> None:
    thread = await client.threads.create()
    values = [
        part.data
        async for part in client.runs.stream(
            thread["thread_id"],
            "chatbot",
            input=said(QUESTION),
            stream_mode=["values", "updates"],
        )
        if part.event == "values"
    ]
    assert values[-1]["messages"][-1]["type"] == "ai"
    assert values[-1]["passages"][0]["document"]


@pytest.mark.parametrize(
    "context",
    [
        pytest.param({"session_id": {"$ne": ""}}, id="an operator as session"),
        pytest.param({"user_id": ["a"]}, id="a list as user"),
        pytest.param({"route": "elsewhere"}, id="no such route"),
    ],
)
async def test_a_bad_context_is_told_as_an_event(
    client: LangGraphClient, context: dict[str, Any]
) -> None:
    events = await run_events(client, None, said("hi"), context=context)
    assert [event["type"] for event in events] == ["metadata", "error"]
    assert events[-1]["data"]["code"] == "invalid_input"


async def test_what_is_wrong_reaches_clients_that_read_no_events(
    client: LangGraphClient,
) -> None:
    stream = client.runs.stream(None, "chatbot", input=said(" "), stream_mode="values")
    failed = [part.data async for part in stream if part.event == "error"]
    assert [part["error"] for part in failed] == ["InputError"]
    assert "question is empty" in failed[0]["message"]


async def test_ten_chats_at_once_do_not_wait_for_each_other(server: str) -> None:
    bodies = [{"question": QUESTION, "session_id": f"many-{number}"} for number in range(10)]
    replies = await asyncio.gather(*(http_events(server, body) for body in bodies))
    assert all(events[-1]["type"] == "end" for events in replies)
    sessions = {
        event["data"]["session_id"]
        for events in replies
        for event in events
        if event["type"] == "metadata"
    }
    assert len(sessions) == 10


async def test_the_servers_own_routes_are_unharmed(
    server: str, client: LangGraphClient
) -> None:
    [assistant] = await client.assistants.search(graph_id="chatbot")
    schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
    assert list(schemas["input_schema"]["properties"]) == ["messages"]
    assert schemas["input_schema"]["properties"]["messages"]["description"]
    choices = schemas["context_schema"]["properties"]
    assert "session_id" in choices
    for name, choice in choices.items():
        assert choice["description"], name
        assert choice["default"] is None, name
    async with httpx.AsyncClient(base_url=server) as http:
        for path in ("/ok", "/docs", "/openapi.json", "/metrics"):
            assert (await http.get(path)).status_code == httpx.codes.OK, path


async def test_a_cancelled_run_keeps_what_was_said(tmp_path: Path) -> None:
    def reply(request: ChatRequest) -> Script:
        if request.tools:
            return call("general_chat")
        return answer([f"word{n} " for n in range(400)], delay=0.05)

    with ModelServer(reply) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        with running_chatbot(tmp_path, "dev", settings=settings) as url:
            async with get_client(url=url) as client, httpx.AsyncClient(base_url=url) as http:
                thread = (await client.threads.create())["thread_id"]
                async for part in client.runs.stream(
                    thread, "chatbot", input=said("count"), stream_mode="custom"
                ):
                    event: Any = part.data
                    if part.event == "metadata":
                        run_id = event["run_id"]
                    elif event["type"] == "content":
                        await client.runs.cancel(thread, run_id, wait=True)
                        break
                reply_body = (await http.get(f"/api/sessions/{thread}")).json()
                [turn] = reply_body["turns"]
                assert turn["status"] == "stopped"
                assert turn["answer"].startswith("word0")
                assert turn["question"] == "count"
                async with asyncio.timeout(5):
                    while not model.abandoned:  # noqa: ASYNC110 - the server tells nobody
                        await asyncio.sleep(0.02)


async def test_a_thread_outlives_a_restart(tmp_path: Path) -> None:
    with running_chatbot(tmp_path, "dev") as url:
        async with get_client(url=url) as client:
            thread = (await client.threads.create())["thread_id"]
            await run_events(client, thread, said("瓦尔登湖是谁写的？"))
    assert "Traceback" not in (tmp_path / "server.log").read_text(encoding="utf-8")
    with running_chatbot(tmp_path, "dev") as url:
        async with get_client(url=url) as client:
            events = await run_events(client, thread, said("那它的风景怎么样"))
            state: Any = await client.threads.get_state(thread)
    metadata = next(event["data"] for event in events if event["type"] == "metadata")
    assert "瓦尔登湖" in metadata["enhanced_query"]
    assert len(state["values"]["messages"]) == 4


async def test_other_web_sites_are_kept_out_of_threads(server: str) -> None:
    async with httpx.AsyncClient(base_url=server) as http:
        for origin, status in (
            ("https://evil.example.com", 403),
            ("https://smith.langchain.com", 200),
            ("http://localhost:3000", 200),
        ):
            # A form may send this from any page, without asking the server first.
            headers = {"Origin": origin, "Content-Type": "text/plain"}
            reply = await http.post("/threads/search", content="{}", headers=headers)
            assert reply.status_code == status
            allowed = reply.headers.get("access-control-allow-origin")
            assert allowed == (origin if status == 200 else None)
        renamed = await http.post("/threads/search", json={}, headers={"Host": "evil.example"})
        assert renamed.status_code == 421
