"""The steps of a turn written by hand, with httpx and with aiohttp: what is to be beaten.

Route by a tool call, retrieve, answer, one after the other; the history is a list. There is
nothing of what makes a service: no failover, no limits, no citations, nothing is kept.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import aiohttp
import httpx

from benchmarks.clients import MODEL
from chatbot.prompts import SHIPPED
from tests.servers.ragflow import KEY

Messages = list[dict[str, str]]


class Transport(Protocol):
    """One HTTP library."""

    async def call(self, method: str, url: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Return the reply's JSON."""
        ...

    def stream(self, url: str, body: object) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the delta of each chunk of a completion."""
        ...


class HandWritten:
    """Answers questions with as little as there can be between the services and the caller."""

    def __init__(self, transport: Transport, model_url: str, ragflow_url: str) -> None:
        self._transport = transport
        self._completions = f"{model_url}/v1/chat/completions"
        self._ragflow = f"{ragflow_url}/api/v1"
        self._prompts = {path.stem: path.read_text("utf-8") for path in SHIPPED.glob("*.md")}
        self._chats: dict[str, Any] = {}
        self._said: dict[str, Messages] = defaultdict(list)

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer."""
        if not self._chats:
            listed = await self._transport.call("GET", f"{self._ragflow}/chats")
            self._chats = {chat["name"]: chat for chat in listed["data"]["chats"]}
        said = self._said[session_id]
        asked = {"role": "user", "content": question}
        names, query = await self._route([*said, asked], follow_up=bool(said))
        if names:
            passages = await self._retrieve(query or question, names)
            system = self._prompts["answer"]
            task = f"<passages>\n{passages}\n</passages>\n\n<question>\n{question}\n</question>"
        else:
            system = self._prompts["chat"]
            task = question
        body = self._body(system, [*said, {"role": "user", "content": task}])
        answer = ""
        async for delta in self._transport.stream(self._completions, body):
            if text := delta.get("content"):
                answer += text
                yield text
        said += [asked, {"role": "assistant", "content": answer}]

    async def _route(self, messages: Messages, *, follow_up: bool) -> tuple[list[str], str]:
        described = "\n".join(f"- {n}: {c['description']}" for n, c in self._chats.items())
        system = self._prompts["router"].replace("$assistants", described)
        names = {"type": "array", "items": {"type": "string", "enum": list(self._chats)}}
        properties: dict[str, Any] = {"assistants": names}
        if follow_up:
            properties["question"] = {"type": "string"}
        tools = [_tool("knowledge_base", properties), _tool("general_chat", {})]
        name = arguments = ""
        body = {**self._body(system, messages), "tools": tools}
        async for delta in self._transport.stream(self._completions, body):
            for call in delta.get("tool_calls", ()):
                name += call["function"].get("name", "")
                arguments += call["function"]["arguments"]
        chosen = json.loads(arguments) if name == "knowledge_base" else {}
        return chosen.get("assistants", []), chosen.get("question", "")

    async def _retrieve(self, query: str, names: list[str]) -> str:
        ids = [id_ for name in names for id_ in self._chats[name]["dataset_ids"]]
        body = {"question": query, "dataset_ids": ids, "page_size": 6}
        found = await self._transport.call("POST", f"{self._ragflow}/retrieval", body)
        return "\n".join(chunk["content"] for chunk in found["data"]["chunks"])

    def _body(self, system: str, messages: Messages) -> dict[str, Any]:
        told = [{"role": "system", "content": system}, *messages]
        return {"model": MODEL, "stream": True, "messages": told}


def _tool(name: str, properties: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


class Httpx:
    """The calls with httpx."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def call(self, method: str, url: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """See `Transport`."""
        return (await self._client.request(method, url, json=body)).json()

    async def stream(self, url: str, body: object) -> AsyncIterator[Mapping[str, Any]]:
        """See `Transport`."""
        async with self._client.stream("POST", url, json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    yield json.loads(line[6:])["choices"][0]["delta"]


class Aiohttp:
    """The calls with aiohttp."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def call(self, method: str, url: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """See `Transport`."""
        async with self._session.request(method, url, json=body) as response:
            return await response.json()

    async def stream(self, url: str, body: object) -> AsyncIterator[Mapping[str, Any]]:
        """See `Transport`."""
        async with self._session.post(url, json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])["choices"][0]["delta"]


@asynccontextmanager
async def with_httpx(model_url: str, ragflow_url: str) -> AsyncIterator[HandWritten]:
    """Open the version with httpx."""
    limits = httpx.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(timeout=60, limits=limits, headers=headers) as client:
        yield HandWritten(Httpx(client), model_url, ragflow_url)


@asynccontextmanager
async def with_aiohttp(model_url: str, ragflow_url: str) -> AsyncIterator[HandWritten]:
    """Open the version with aiohttp."""
    headers = {"Authorization": f"Bearer {KEY}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield HandWritten(Aiohttp(session), model_url, ragflow_url)
