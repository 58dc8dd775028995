"""The same steps as a LlamaIndex workflow, put together as its documentation does it.

It runs in an environment of its own; the project never imports it.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, create_model

from benchmarks.steps import MODEL, SECONDS, TASK, Services, Told


class Asked(StartEvent):
    """A question after what was said."""

    question: str
    said: list[ChatMessage]


class LookUp(Event):
    """The router wants something looked up."""

    query: str
    assistants: list[str]


class Prompt(Event):
    """What the model is to answer."""

    messages: list[ChatMessage]


class Piece(Event):
    """A piece of the answer."""

    text: str


class RagflowRetriever(BaseRetriever):
    """Retrieves from some assistants."""

    def __init__(
        self, client: httpx.AsyncClient, services: Services, told: Told, names: list[str]
    ) -> None:
        super().__init__()
        self._client = client
        self._url = f"{services.ragflow}/api/v1/retrieval"
        self._told = told
        self._names = names

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        body = self._told.retrieval(query_bundle.query_str, self._names)
        return _nodes(httpx.post(self._url, json=body, headers=self._client.headers))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        body = self._told.retrieval(query_bundle.query_str, self._names)
        return _nodes(await self._client.post(self._url, json=body))


def _nodes(response: httpx.Response) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(text=chunk["content"]), score=chunk["similarity"])
        for chunk in response.json()["data"]["chunks"]
    ]


class AnswerFlow(Workflow):
    """Routes, retrieves and answers."""

    def __init__(self, client: httpx.AsyncClient, services: Services, told: Told) -> None:
        super().__init__(timeout=SECONDS)
        self._client = client
        self._services = services
        self._told = told
        self._model = OpenAILike(
            model=MODEL,
            api_base=f"{services.model}/v1",
            api_key="none",
            context_window=128_000,
            is_chat_model=True,
            is_function_calling_model=True,
            timeout=SECONDS,
        )
        names: Any = list[Literal[tuple(told.names)]]
        first = create_model("knowledge_base", assistants=(names, ...))
        later = create_model("knowledge_base", assistants=(names, ...), question=(str, ...))
        self._tools = {
            follow_up: [
                _tool("knowledge_base", schema),
                _tool("general_chat", create_model("general_chat")),
            ]
            for follow_up, schema in ((False, first), (True, later))
        }

    @step
    async def route(self, ctx: Context, asked: Asked) -> LookUp | Prompt:
        """Let the model choose between looking up and chatting."""
        await ctx.store.set("asked", asked)
        user = ChatMessage(role="user", content=asked.question)
        reply = await self._model.achat_with_tools(
            self._tools[bool(asked.said)],
            chat_history=[_system(self._told.router), *asked.said, user],
        )
        call = self._model.get_tool_calls_from_response(reply)[0]
        if call.tool_name != "knowledge_base":
            return Prompt(messages=[_system(self._told.chat), *asked.said, user])
        query = call.tool_kwargs.get("question", asked.question)
        return LookUp(query=query, assistants=call.tool_kwargs["assistants"])

    @step
    async def retrieve(self, ctx: Context, wanted: LookUp) -> Prompt:
        """Ask RAGFlow."""
        retriever = RagflowRetriever(
            self._client, self._services, self._told, wanted.assistants
        )
        nodes = await retriever.aretrieve(wanted.query)
        asked: Asked = await ctx.store.get("asked")
        passages = "\n".join(node.get_content() for node in nodes)
        task = TASK.format(passages=passages, question=asked.question)
        user = ChatMessage(role="user", content=task)
        return Prompt(messages=[_system(self._told.answer), *asked.said, user])

    @step
    async def answer(self, ctx: Context, prompt: Prompt) -> StopEvent:
        """Stream the model's answer."""
        answer = ""
        async for chunk in await self._model.astream_chat(prompt.messages):
            if chunk.delta:
                answer += chunk.delta
                ctx.write_event_to_stream(Piece(text=chunk.delta))
        return StopEvent(result=answer)


def _system(text: str) -> ChatMessage:
    return ChatMessage(role="system", content=text)


def _tool(name: str, schema: type[BaseModel]) -> FunctionTool:
    def called(**_: Any) -> None:  # noqa: ANN401 - whatever the model says: the flow acts on it
        return None

    return FunctionTool.from_defaults(called, name=name, description=name, fn_schema=schema)


class LlamaIndex:
    """Answers questions with one workflow; the history is a list of messages."""

    def __init__(self, flow: AnswerFlow) -> None:
        self._flow = flow
        self._said: dict[str, list[ChatMessage]] = defaultdict(list)

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer."""
        said = self._said[session_id]
        handler = self._flow.run(start_event=Asked(question=question, said=list(said)))
        async for event in handler.stream_events():
            if isinstance(event, Piece):
                yield event.text
        said += [
            ChatMessage(role="user", content=question),
            ChatMessage(role="assistant", content=await handler),
        ]


@asynccontextmanager
async def opened(services: Services) -> AsyncIterator[LlamaIndex]:
    """Put the workflow together."""
    headers = dict(services.headers)
    async with httpx.AsyncClient(headers=headers, timeout=SECONDS) as client:
        listed = await client.get(f"{services.ragflow}/api/v1/chats")
        yield LlamaIndex(AnswerFlow(client, services, Told(listed.json())))
