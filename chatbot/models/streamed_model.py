"""A chat model for which streaming is the only way: whole answers are collected streams."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, cast
from uuid import uuid4

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatbot.models.finish_reasons import CUTTING
from chatbot.models.synchronous import iterate
from chatbot.models.time_limits import TimeLimits

_FOR_TRACES = ("ls_structured_output_format", "structured_output_format")

Tool = dict[str, Any] | type | Callable[..., Any] | BaseTool


class StreamedModel(BaseChatModel):
    """Derives every way of asking from `chunks`, which a model implements.

    Each chunk says something: text in `content`, reasoning in
    `additional_kwargs["reasoning_content"]`, fragments of tool calls. The last one has
    `finish_reason` and `model_name` in `response_metadata`. Failures are `ModelError`s.
    """

    limits: TimeLimits = TimeLimits()

    @abstractmethod
    def chunks(
        self, messages: list[BaseMessage], limits: TimeLimits, **options: object
    ) -> AsyncGenerator[AIMessageChunk]:
        """Yield the chunks of an answer.

        Raises:
            ModelError: The model refused or failed.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections."""

    async def astream(
        self,
        input: LanguageModelInput,  # noqa: A002 - LangChain's signature
        config: RunnableConfig | None = None,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,  # noqa: ANN401 - as above
    ) -> AsyncIterator[AIMessageChunk]:
        """Yield the chunks. Where nobody watches the run, nothing is done for watchers.

        What LangChain does for each chunk costs as much as reading it.
        """
        config = ensure_config(config)
        messages = self._convert_input(input).to_messages()
        if not self._can_go_straight(messages, config):
            stream = super().astream(input, config, stop=stop, **kwargs)
            async with aclosing(cast("AsyncGenerator[AIMessageChunk]", stream)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        options = {name: kwargs[name] for name in kwargs if name not in _FOR_TRACES}
        if stop is not None:
            options["stop"] = stop
        run_id = f"lc_run--{uuid4()}"
        async with aclosing(self.chunks(messages, self.limits, **options)) as chunks:
            async for chunk in chunks:
                if chunk.id is None:
                    chunk.id = run_id
                yield chunk

    def _can_go_straight(self, messages: Sequence[BaseMessage], config: RunnableConfig) -> bool:
        """Whether LangChain has nothing to do here: no callback, nothing to convert."""
        callbacks = AsyncCallbackManager.configure(
            config.get("callbacks"), self.callbacks, self.verbose
        )
        return not (
            callbacks.handlers
            or self.rate_limiter
            or self.disable_streaming
            or self.output_version == "v1"
            or any(not isinstance(message.content, str) for message in messages)
        )

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> AsyncGenerator[ChatGenerationChunk]:
        if stop is not None:
            kwargs["stop"] = stop
        async with aclosing(self.chunks(messages, self.limits, **kwargs)) as chunks:
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
        for chunk in iterate(lambda: self._astream(messages, stop, **kwargs)):
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
    if message.response_metadata.get("finish_reason") in CUTTING:
        _refuse_cut_calls(message)
    return ChatResult(generations=[ChatGeneration(message=message)])


def _refuse_cut_calls(message: AIMessage) -> None:
    """Declare tool calls invalid that a limit or a filter cut: LangChain completes them."""
    message.invalid_tool_calls += [
        invalid_tool_call(
            name=call["name"], args=str(call["args"]), id=call["id"], error="cut off"
        )
        for call in message.tool_calls
    ]
    message.tool_calls = []


def offered(tools: Sequence[Tool], tool_choice: object) -> dict[str, Any]:
    """Return tools and the choice among them in the form of OpenAI's API."""
    options: dict[str, Any] = {"tools": [convert_to_openai_tool(tool) for tool in tools]}
    names = {tool["function"]["name"] for tool in options["tools"]}
    if isinstance(tool_choice, str) and tool_choice in names:
        tool_choice = {"type": "function", "function": {"name": tool_choice}}
    elif tool_choice is True or tool_choice == "any":
        tool_choice = "required"
    return {**options, "tool_choice": tool_choice} if tool_choice else options
