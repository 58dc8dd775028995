"""Ports for tests of the graph: in memory, or scripted word by word."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field

from chatbot.domain import Assistant, Findings, Passage, SourceFile
from chatbot.errors import KnowledgeBaseError
from chatbot.messages import text_of

Script = Callable[[str], Sequence[str]]
HANDBOOK = Assistant(id="1", name="handbook", description="benefits, leave")
WALDEN = Assistant(id="2", name="瓦尔登湖", description="Walden, Thoreau, the pond")


def passage(text: str, assistant: Assistant = HANDBOOK, score: float = 0.9) -> Passage:
    return Passage(
        id=text,
        text=text,
        document=f"{assistant.name}.md",
        document_id=assistant.id,
        assistant=assistant.name,
        score=score,
    )


@dataclass
class InMemoryKnowledgeBase:
    """Finds the passages of an assistant of which a word stands in the query."""

    passages: Mapping[str, Sequence[Passage]] = field(default_factory=dict)
    failing: dict[str, KnowledgeBaseError] = field(default_factory=dict)
    down: KnowledgeBaseError | None = None
    queries: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    async def assistants(self) -> Sequence[Assistant]:
        if self.down:
            raise self.down
        return [HANDBOOK, WALDEN]

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        self.queries.append((query, tuple(assistant.name for assistant in assistants)))
        if self.down:
            raise self.down
        names = [assistant.name for assistant in assistants]
        failures = {name: self.failing[name].message for name in names if name in self.failing}
        if failures and len(failures) == len(names):
            raise self.failing[names[0]]
        found = [
            one
            for name in names
            if name not in self.failing
            for one in self.passages.get(name, ())
            if any(word in one.text for word in query.split())
        ]
        nearest = () if found else [f"{name}.md" for name in names]
        return Findings(passages=found[:limit], failures=failures, nearest=nearest)

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        known = {assistant.id: assistant for assistant in await self.assistants()}
        if (assistant := known.get(document_id)) is None:
            return None
        text = "\n".join(each.text for each in self.passages.get(assistant.name, ()))
        return SourceFile(name=f"{assistant.name}.md", content=text.encode())

    async def check(self) -> str:
        return self.down.message if self.down else ""


@dataclass
class Call:
    """A call of the router's tools. `pause` lies between its name and its arguments."""

    name: str
    arguments: str = "{}"
    pause: asyncio.Event | None = None


@dataclass
class Said:
    """What the model says to one prompt: pieces of text, calls, and how it ends."""

    pieces: Sequence[str] = ()
    call: Call | None = None
    reasoning: str = ""
    images: Sequence[str] = ()
    error: Exception | None = None
    finish: str = "stop"
    pause: asyncio.Event | None = None


class ScriptedChatModel(BaseChatModel):
    """Says to the n-th prompt what the n-th entry of `script` holds."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    script: list[Said] = Field(default_factory=list)
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    offered: list[list[str]] = Field(default_factory=list)
    options: list[dict[str, Any]] = Field(default_factory=list)
    cancelled: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.prompts.append(messages)
        self.offered.append([tool["function"]["name"] for tool in kwargs.get("tools", [])])
        options = {name: value for name, value in kwargs.items() if name != "tools"}
        self.options.append(options | ({"stop": stop} if stop else {}))
        said = self.script.pop(0)
        try:
            async for chunk in self._say(said):
                yield chunk
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.append(messages)
            raise

    async def _say(self, said: Said) -> AsyncIterator[ChatGenerationChunk]:
        if said.reasoning:
            thought = {"reasoning_content": said.reasoning}
            yield self._chunk(AIMessageChunk(content="", additional_kwargs=thought))
        if said.images:
            made = {"images": list(said.images)}
            yield self._chunk(AIMessageChunk(content="", additional_kwargs=made))
        for piece in said.pieces:
            yield self._chunk(AIMessageChunk(content=piece))
            await asyncio.sleep(0)
        if said.pause:
            await said.pause.wait()
        if said.error:
            raise said.error
        calls = []
        if said.call:
            name: str | None = said.call.name
            if said.call.pause:
                begun = [tool_call_chunk(name=name, args="", id="call", index=0)]
                yield self._chunk(AIMessageChunk(content="", tool_call_chunks=begun))
                await said.call.pause.wait()
                name = None
            calls = [tool_call_chunk(name=name, args=said.call.arguments, id="call", index=0)]
        end = {"finish_reason": said.finish, "model_name": "scripted"}
        yield self._chunk(
            AIMessageChunk(content="", tool_call_chunks=calls, response_metadata=end)
        )

    @staticmethod
    def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
        return ChatGenerationChunk(message=message)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def asked(self, number: int) -> str:
        """Return the last message of the n-th prompt."""
        return text_of(self.prompts[number][-1].content)
