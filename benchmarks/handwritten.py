"""The steps of a turn written by hand, with httpx and with aiohttp: what is to be beaten.

Route by a tool call, retrieve, answer, one after the other; the history is a list. There is
nothing of what makes a service: no failover, no limits, no citations, nothing is kept. Each
loads only what it needs, so that its start can be compared too.
"""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.steps import MODEL, SECONDS, TASK, Services, Told

if TYPE_CHECKING:
    import aiohttp
    import httpx

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

    def __init__(self, transport: Transport, services: Services, told: Told) -> None:
        self._transport = transport
        self._completions = f"{services.model}/v1/chat/completions"
        self._retrieval = f"{services.ragflow}/api/v1/retrieval"
        self._told = told
        self._said: dict[str, Messages] = defaultdict(list)

    @classmethod
    async def open(cls, transport: Transport, services: Services) -> "HandWritten":
        """Ask RAGFlow for its assistants first."""
        listed = await transport.call("GET", f"{services.ragflow}/api/v1/chats")
        return cls(transport, services, Told(listed))

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer."""
        said = self._said[session_id]
        answer = ""
        async for text in self.answer(question, said):
            answer += text
            yield text
        said += [_message("user", question), _message("assistant", answer)]

    async def answer(self, question: str, said: Messages) -> AsyncIterator[str]:
        """Yield the pieces of the answer to a question after what was said."""
        asked = [*said, _message("user", question)]
        names, query = await self._route(asked, follow_up=bool(said))
        system, task = self._told.chat, question
        if names:
            system = self._told.answer
            passages = await self._retrieve(query or question, names)
            task = TASK.format(passages=passages, question=question)
        body = _body(system, [*said, _message("user", task)])
        async for delta in self._transport.stream(self._completions, body):
            if text := delta.get("content"):
                yield text

    async def _route(self, messages: Messages, *, follow_up: bool) -> tuple[list[str], str]:
        tools = [
            _tool("knowledge_base", self._told.parameters(follow_up=follow_up)),
            _tool("general_chat", {"type": "object", "properties": {}}),
        ]
        name = arguments = ""
        body = {**_body(self._told.router, messages), "tools": tools}
        async for delta in self._transport.stream(self._completions, body):
            for call in delta.get("tool_calls", ()):
                name += call["function"].get("name", "")
                arguments += call["function"]["arguments"]
        chosen = json.loads(arguments) if name == "knowledge_base" else {}
        return chosen.get("assistants", []), chosen.get("question", "")

    async def _retrieve(self, query: str, names: list[str]) -> str:
        body = self._told.retrieval(query, names)
        found = await self._transport.call("POST", self._retrieval, body)
        return "\n".join(chunk["content"] for chunk in found["data"]["chunks"])


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _body(system: str, messages: Messages) -> dict[str, Any]:
    return {"model": MODEL, "stream": True, "messages": [_message("system", system), *messages]}


def _tool(name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


class Httpx:
    """The calls with httpx."""

    def __init__(self, client: "httpx.AsyncClient") -> None:
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

    def __init__(self, session: "aiohttp.ClientSession") -> None:
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
async def with_httpx(services: Services) -> AsyncIterator[HandWritten]:
    """Open the version with httpx."""
    import httpx  # noqa: PLC0415 - only one of two libraries

    limits = httpx.Limits(max_connections=None)
    headers = dict(services.headers)
    async with httpx.AsyncClient(timeout=SECONDS, limits=limits, headers=headers) as client:
        yield await HandWritten.open(Httpx(client), services)


@asynccontextmanager
async def with_aiohttp(services: Services) -> AsyncIterator[HandWritten]:
    """Open the version with aiohttp."""
    import aiohttp  # noqa: PLC0415 - only one of two libraries

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=services.headers) as session:
        yield await HandWritten.open(Aiohttp(session), services)
