"""Ports in memory, and a model that says what a test tells it to."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from chatbot.domain import (
    Assistant,
    Findings,
    LoadedHistory,
    Passage,
    Session,
    SessionSummary,
    SourceFile,
    Turn,
)
from chatbot.errors import HistoryError, KnowledgeBaseError
from chatbot.images.image import Image

Script = Callable[[str], AsyncIterator[str]]


class InMemoryChatHistory:
    def __init__(self) -> None:
        self.turns: dict[Session, list[Turn]] = {}
        self.images: dict[Session, dict[str, Image]] = {}
        self.degraded = ""
        self.saving_seconds = 0.0

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        self._check_readable()
        turns = self.turns.get(session, [])
        return LoadedHistory(turns=turns[-limit:] if limit else [], degraded=self.degraded)

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        return next((t for t in self.turns.get(session, []) if t.id == turn_id), None)

    async def save(self, session: Session, turn: Turn) -> str:
        await asyncio.sleep(self.saving_seconds)
        turns = self.turns.setdefault(session, [])
        turns[:] = [*(kept for kept in turns if kept.id != turn.id), turn]
        return self.degraded

    async def clear(self, session: Session) -> int:
        self.images.pop(session, None)
        return len(self.turns.pop(session, []))

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        self.images.setdefault(session, {})[image.name] = image

    async def find_image(self, user_id: str, name: str) -> Image | None:
        kept = (images for owner, images in self.images.items() if owner.user_id == user_id)
        return next((images[name] for images in kept if name in images), None)

    async def sessions(self, user_id: str, *, limit: int) -> Sequence[SessionSummary]:
        self._check_readable()
        found = [
            SessionSummary(
                session_id=session.session_id,
                title=turns[0].question[:60],
                last_active=turns[-1].started_at,
                turns=len(turns),
            )
            for session, turns in self.turns.items()
            if session.user_id == user_id
        ]
        return sorted(found, key=lambda each: each.last_active, reverse=True)[:limit]

    async def check(self) -> str:
        return self.degraded

    def _check_readable(self) -> None:
        if self.degraded == "gone":
            message = "The history cannot be read."
            raise HistoryError(message)


class InMemoryKnowledgeBase:
    def __init__(
        self, assistants: Sequence[Assistant] = (), passages: Sequence[Passage] = ()
    ) -> None:
        self.known = assistants
        self.passages = passages
        self.down = ""

    async def assistants(self) -> Sequence[Assistant]:
        self._raise_when_down()
        return self.known

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        del query
        self._raise_when_down()
        names = {assistant.name for assistant in assistants}
        return Findings(passages=[p for p in self.passages if p.assistant in names][:limit])

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        self._raise_when_down()
        names = {assistant.name for assistant in assistants}
        texts = {each.document_id: each for each in self.passages if each.assistant in names}
        if (found := texts.get(document_id)) is None:
            return None
        return SourceFile(name=found.document, content=found.text.encode())

    async def check(self) -> str:
        return self.down

    def _raise_when_down(self) -> None:
        if self.down:
            raise KnowledgeBaseError("unavailable", self.down)


class ScriptedModel(BaseChatModel):
    """Routes by `routes`, which maps a question to its route, and answers by `script`."""

    script: Script
    routes: dict[str, str]
    asked: list[Sequence[BaseMessage]]
    closed: list[str]
    rewrites: dict[str, str]
    routing_seconds: float = 0
    thoughts: str = ""
    drawings: Sequence[str] = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": "scripted-1"}

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools), **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        del stop, run_manager
        self.asked.append(messages)
        question = messages[-1].additional_kwargs.get("question") or str(messages[-1].content)
        question = question.removesuffix("\n[image]")
        if tools := kwargs.get("tools"):
            await asyncio.sleep(self.routing_seconds)
            yield _chunk(self._call(question, tools))
            return
        if self.thoughts:
            thought = {"reasoning_content": self.thoughts}
            yield _chunk(AIMessageChunk(content="", additional_kwargs=thought))
        if self.drawings:
            drawn = {"images": self.drawings}
            yield _chunk(AIMessageChunk(content="", additional_kwargs=drawn))
        try:
            async for piece in self.script(question):
                yield _chunk(AIMessageChunk(content=piece))
        finally:
            self.closed.append(question)

    def _call(self, question: str, tools: Sequence[dict[str, Any]]) -> AIMessageChunk:
        name = self.routes.get(question, "knowledge_base")
        if name == "general_chat" and len(tools) > 1:
            return _call(name, "{}")
        arguments = {"assistants": [], "question": self.rewrites.get(question, question)}
        return _call("knowledge_base", json.dumps(arguments))


def scripted(script: Script, **routes: str) -> ScriptedModel:
    return ScriptedModel(script=script, routes=routes, asked=[], closed=[], rewrites={})


def _call(name: str, arguments: str) -> AIMessageChunk:
    call = tool_call_chunk(name=name, args=arguments, id="call-1", index=0)
    return AIMessageChunk(content="", tool_call_chunks=[call])


def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message)


def says(*pieces: str) -> Script:
    async def script(_: str) -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    return script


def stalls(text: str) -> Script:
    async def script(_: str) -> AsyncIterator[str]:
        yield text
        await asyncio.sleep(60)

    return script


def waits(first: str, go_on: threading.Event, rest: str) -> Script:
    async def script(_: str) -> AsyncIterator[str]:
        yield first
        await asyncio.to_thread(go_on.wait, 10)
        yield rest

    return script
