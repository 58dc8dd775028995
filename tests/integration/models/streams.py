"""Asks a model and notes what comes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata

from chatbot.errors import ModelError
from chatbot.models.openai_compatible import OpenAICompatibleModel
from chatbot.models.time_limits import TimeLimits
from chatbot.models.tool_calls import ToolCallReader
from tests.servers.model import ModelServer, Script

PATIENT = TimeLimits(first_token=30, between_tokens=30, total=60)
STALLING = TimeLimits(first_token=30, between_tokens=0.3, total=60)  # for what stands still
NAMES = {"knowledge_base", "general_chat"}


@dataclass(kw_only=True)
class Seen:
    """What a stream brought, and the error that ended it."""

    answer: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    finish: str | None = None
    usage: UsageMetadata | None = None
    model: str | None = None
    chunks: int = 0
    error: ModelError | None = None

    @property
    def kind(self) -> str | None:
        return self.error.kind if self.error else None


@asynccontextmanager
async def opened(base_url: str, **options: Any) -> AsyncIterator[OpenAICompatibleModel]:
    choices = {"model": "scripted", "api_key": "sk-secret-of-the-test", "limits": PATIENT}
    model = OpenAICompatibleModel(base_url=base_url, **{**choices, **options})
    try:
        yield model
    finally:
        await model.aclose()


async def watch(stream: AsyncIterator[AIMessage]) -> Seen:
    seen = Seen()
    reader = ToolCallReader(NAMES)
    try:
        async for chunk in stream:
            assert isinstance(chunk, AIMessageChunk)
            assert isinstance(chunk.content, str)
            seen.chunks += 1
            reader.feed(chunk)
            seen.answer += chunk.content
            seen.reasoning += chunk.additional_kwargs.get("reasoning_content", "")
            seen.finish = chunk.response_metadata.get("finish_reason", seen.finish)
            seen.model = chunk.response_metadata.get("model_name", seen.model)
            seen.usage = chunk.usage_metadata or seen.usage
    except ModelError as error:
        seen.error = error
    seen.calls = [(call.name, dict(call.arguments)) for call in reader.calls()]
    return seen


async def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it changes in another thread
            await asyncio.sleep(0.01)


async def ask(script: Script, **options: Any) -> Seen:
    with ModelServer([script]) as server:
        async with opened(server.base_url, **options) as model:
            seen = await watch(model.astream("Where is Paris?"))
        assert len(server.seen) == 1
    return seen
