"""The same steps as a Haystack pipeline, put together as its documentation does it.

It runs in an environment of its own; the project never imports it.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.joiners import BranchJoiner
from haystack.components.routers import ConditionalRouter
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret

from benchmarks.steps import MODEL, SECONDS, Services, Told

TASK = """<passages>
{% for document in documents %}{{ document.content }}
{% endfor %}</passages>

<question>
{{ question }}
</question>"""
ROUTES: Any = [
    {
        "condition": "{{ replies[0].tool_call.tool_name == 'knowledge_base' }}",
        "output": "replies",
        "output_name": "look_up",
        "output_type": list[ChatMessage],
        "output_passthrough": True,
    },
    {
        "condition": "{{ True }}",
        "output": "chat_messages",
        "output_name": "chat",
        "output_type": list[ChatMessage],
        "output_passthrough": True,
    },
]


@component
class RagflowRetriever:
    """Retrieves from the assistants that the router's call names."""

    def __init__(self, services: Services, told: Told) -> None:
        self._url = f"{services.ragflow}/api/v1/retrieval"
        self._told = told
        self._headers = dict(services.headers)
        self._client = httpx.AsyncClient(headers=self._headers, timeout=SECONDS)

    @component.output_types(documents=list[Document])
    def run(self, replies: list[ChatMessage], question: str) -> dict[str, Any]:
        """Retrieve and wait."""
        body = self._body(replies, question)
        return _documents(httpx.post(self._url, json=body, headers=self._headers))

    @component.output_types(documents=list[Document])
    async def run_async(self, replies: list[ChatMessage], question: str) -> dict[str, Any]:
        """Retrieve."""
        return _documents(
            await self._client.post(self._url, json=self._body(replies, question))
        )

    async def close_async(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _body(self, replies: list[ChatMessage], question: str) -> dict[str, Any]:
        call = replies[0].tool_call
        assert call is not None  # noqa: S101 - the route was taken because of it
        query = call.arguments.get("question", question)
        return self._told.retrieval(query, call.arguments["assistants"])


def _documents(response: httpx.Response) -> dict[str, Any]:
    chunks = response.json()["data"]["chunks"]
    return {"documents": [Document(content=chunk["content"]) for chunk in chunks]}


class Haystack:
    """Answers questions with one pipeline; the history is a list of messages."""

    def __init__(self, pipeline: Pipeline, told: Told) -> None:
        self._pipeline = pipeline
        self._told = told
        self._said: dict[str, list[ChatMessage]] = defaultdict(list)
        self._tools = {
            follow_up: [
                _tool("knowledge_base", told.parameters(follow_up=follow_up)),
                _tool("general_chat", {"type": "object", "properties": {}}),
            ]
            for follow_up in (False, True)
        }

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer."""
        said = self._said[session_id]
        asked = ChatMessage.from_user(question)
        told, answer = self._told, ""
        template = [ChatMessage.from_system(told.answer), *said, ChatMessage.from_user(TASK)]
        data = {
            "router": {
                "messages": [ChatMessage.from_system(told.router), *said, asked],
                "tools": self._tools[bool(said)],
            },
            "route": {"chat_messages": [ChatMessage.from_system(told.chat), *said, asked]},
            "retriever": {"question": question},
            "answer_prompt": {"template": template, "question": question},
        }
        async for chunk in self._pipeline.stream(data=data, streaming_components=["llm"]):
            if chunk.content:
                answer += chunk.content
                yield chunk.content
        said += [asked, ChatMessage.from_assistant(answer)]


def _tool(name: str, parameters: dict[str, Any]) -> Tool:
    def called() -> None:  # the pipeline acts on the call itself
        return None

    return Tool(name=name, description=name, parameters=parameters, function=called)


@asynccontextmanager
async def opened(services: Services) -> AsyncIterator[Haystack]:
    """Put the pipeline together."""
    async with httpx.AsyncClient(headers=dict(services.headers)) as client:
        listed = await client.get(f"{services.ragflow}/api/v1/chats")
    told = Told(listed.json())

    def model() -> OpenAIChatGenerator:
        return OpenAIChatGenerator(
            api_key=Secret.from_token("none"),
            api_base_url=f"{services.model}/v1",
            model=MODEL,
            timeout=SECONDS,
        )

    pipeline = Pipeline()
    pipeline.add_component("router", model())
    pipeline.add_component("route", ConditionalRouter(ROUTES))
    pipeline.add_component("retriever", RagflowRetriever(services, told))
    pipeline.add_component(
        "answer_prompt", ChatPromptBuilder(variables=["documents", "question"])
    )
    pipeline.add_component("messages", BranchJoiner(list[ChatMessage]))
    pipeline.add_component("llm", model())
    pipeline.connect("router.replies", "route.replies")
    pipeline.connect("route.look_up", "retriever.replies")
    pipeline.connect("retriever.documents", "answer_prompt.documents")
    pipeline.connect("answer_prompt.prompt", "messages")
    pipeline.connect("route.chat", "messages")
    pipeline.connect("messages", "llm.messages")
    await pipeline.warm_up_async()
    try:
        yield Haystack(pipeline, told)
    finally:
        await pipeline.close_async()
