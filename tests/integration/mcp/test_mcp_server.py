"""The bot as an MCP server, asked by MCP's own client: over HTTP and on stdio."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from serving.auth.keys import create_key
from tests.integration.http.workers import DOCUMENT, Workers, workers
from tests.servers.model import Brain, ChatRequest, Script, answer, call

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@dataclass(frozen=True, kw_only=True)
class Keys:
    folder: Path
    ann: str
    reader: str


def think(request: ChatRequest) -> Script:
    if request.tools:
        return call("knowledge_base", {"assistants": ["Handbook"]})
    return answer("You have 25 days [1].")


@pytest.fixture(name="keys", scope="module")
def made_keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    return Keys(
        folder=folder,
        ann=create_key(folder, "ann"),
        reader=create_key(folder, "reader", assistants=["Other"]),
    )


@pytest.fixture(name="running", scope="module")
def running_worker(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with workers(tmp_path_factory.mktemp("mcp"), Brain(), auth_keys_dir=keys.folder) as running:
        running.model._replies = think  # noqa: SLF001 - by request, not by table
        yield running


@asynccontextmanager
async def over_http(running: Workers, key: str) -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {key}"}
    url = f"{running.clients[0].base_url}/api/mcp"
    async with (
        httpx.AsyncClient(headers=headers, timeout=20) as http,
        streamable_http_client(url, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


@asynccontextmanager
async def on_stdio(folder: Path) -> AsyncIterator[ClientSession]:
    knowledge = folder / "knowledge" / "Handbook"
    knowledge.mkdir(parents=True)
    (knowledge / "leave.md").write_text(DOCUMENT, encoding="utf-8")
    settings = {"CHATBOT_DATA_DIR": str(folder), "KNOWLEDGE_DIR": str(folder / "knowledge")}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "serving.cli", "mcp"],
        env={**os.environ, **settings},
    )
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def content_of(result: CallToolResult) -> dict[str, Any]:
    assert not result.isError, result.content
    assert result.structuredContent is not None
    return result.structuredContent


def refusal_of(result: CallToolResult) -> str:
    assert result.isError
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_tools_over_http(running: Workers, keys: Keys) -> None:
    async with over_http(running, keys.ann) as session:
        tools = await session.list_tools()
        assert [tool.name for tool in tools.tools] == [
            "list_assistants",
            "search_knowledge",
            "ask",
        ]
        known = content_of(await session.call_tool("list_assistants", {}))
        assert [each["name"] for each in known["assistants"]] == ["Handbook"]

        found = content_of(
            await session.call_tool("search_knowledge", {"query": "leave a year"})
        )
        assert found["passages"][0]["document"] == "leave.md"
        assert found["passages"][0]["score"] > 0

        question = {"question": "How many days of leave?", "session_id": "m"}
        answered = content_of(await session.call_tool("ask", question))
        assert answered["answer"] == "You have 25 days [1]."
        assert answered["citations"][0]["document"] == "leave.md"
    headers = {"X-API-Key": keys.ann}
    read = running.clients[0].get("/api/sessions/m", headers=headers)
    assert read.json()["turns"][0]["question"] == question["question"]


async def test_user_finds_only_what_is_theirs(running: Workers, keys: Keys) -> None:
    async with over_http(running, keys.reader) as session:
        known = content_of(await session.call_tool("list_assistants", {}))
        assert known == {"assistants": []}
        found = content_of(await session.call_tool("search_knowledge", {"query": "leave"}))
        assert found["passages"] == []
        named = {"query": "leave", "assistants": ["Handbook"]}
        refused = await session.call_tool("search_knowledge", named)
        assert "no assistant named Handbook" in refusal_of(refused)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        pytest.param("search_knowledge", {}, "query", id="without its argument"),
        pytest.param("search_knowledge", {"query": 7}, "string", id="a wrong type"),
        pytest.param("ask", {"question": ""}, "", id="an empty question"),
        pytest.param("ask", {"question": "a", "session_id": "a/b"}, "session id", id="no id"),
        pytest.param("ask", {"question": "a", "user_id": "root"}, "user_id", id="another user"),
        pytest.param("ask", {"question": "a" * 200_000}, "100000", id="too long"),
        pytest.param("delete_everything", {}, "no tool", id="no such tool"),
    ],
)
async def test_wrong_use_is_told(
    running: Workers, keys: Keys, tool: str, arguments: dict[str, Any], told: str
) -> None:
    async with over_http(running, keys.ann) as session:
        assert told in refusal_of(await session.call_tool(tool, arguments))


def test_nobody_gets_in_without_a_key(running: Workers) -> None:
    client = running.clients[0]
    headers = {"Accept": "application/json, text/event-stream"}
    response = client.post("/api/mcp", json=INITIALIZE, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthorized")
    elsewhere = {**headers, "Origin": "https://evil.example"}
    assert client.post("/api/mcp", json=INITIALIZE, headers=elsewhere).status_code == 403


async def test_tools_on_stdio(tmp_path: Path) -> None:
    async with on_stdio(tmp_path) as session:
        found = content_of(
            await session.call_tool("search_knowledge", {"query": "leave a year"})
        )
        assert found["passages"][0]["document"] == "leave.md"
        answered = content_of(
            await session.call_tool(
                "ask", {"question": "How many days of leave a year has everybody?"}
            )
        )
        assert "25 days" in answered["answer"]
