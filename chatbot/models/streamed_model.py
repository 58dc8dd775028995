"""A chat model for which streaming is the only way: whole answers are collected streams."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from chatbot.models.synchronous import iterate


class StreamedModel(BaseChatModel):
    """Derives every way of asking from `_chunks`, which a model implements.

    Its chunks carry text in `content`, reasoning in `additional_kwargs["reasoning_content"]`
    and, the last of them, `finish_reason` and `model_name` in `response_metadata`. Failures
    are `ModelError`s.
    """

    @abstractmethod
    def _chunks(
        self, messages: list[BaseMessage], **kwargs: object
    ) -> AsyncGenerator[AIMessageChunk]:
        """Yield the chunks of the answer. `kwargs` holds `stop` where it was given."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections."""

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> AsyncGenerator[ChatGenerationChunk]:
        if stop is not None:
            kwargs["stop"] = stop
        async with aclosing(self._chunks(messages, **kwargs)) as chunks:
            async for message in chunks:
                chunk = ChatGenerationChunk(message=message)
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        chunks = self._astream(messages, stop, run_manager, **kwargs)
        return _result([chunk async for chunk in chunks])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in iterate(lambda: self._astream(messages, stop, **kwargs), self.aclose):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        return _result(list(self._stream(messages, stop, run_manager, **kwargs)))


def _result(chunks: Sequence[ChatGenerationChunk]) -> ChatResult:
    first, *others = [c.message for c in chunks if isinstance(c.message, AIMessageChunk)]
    message = message_chunk_to_message(add_ai_message_chunks(first, *others))
    assert isinstance(message, AIMessage)  # noqa: S101 - made from its chunks
    if message.response_metadata.get("finish_reason") == "length":
        _refuse_cut_calls(message)
    return ChatResult(generations=[ChatGeneration(message=message)])


def _refuse_cut_calls(message: AIMessage) -> None:
    """Declare tool calls invalid that the length limit cut: LangChain completes them."""
    message.invalid_tool_calls += [
        invalid_tool_call(
            name=call["name"], args=str(call["args"]), id=call["id"], error="cut by the limit"
        )
        for call in message.tool_calls
    ]
    message.tool_calls = []
