"""Models of other providers through their LangChain packages, with our errors and limits."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import Runnable

from chatbot.errors import ConfigurationError
from chatbot.models.endpoints import PACKAGES, Endpoint
from chatbot.models.failures import error_of_exception, model_error
from chatbot.models.finish_reasons import finish_reason
from chatbot.models.streamed_model import StreamedModel, Tool, offered
from chatbot.models.time_limits import TimeLimits, Timer
from chatbot.settings import Settings

NO_TOOLS = "it cannot call tools"
NO_FORM = "it takes no response_format"
_OF_OPENAI = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "response_format", "user"}
)


class OtherProviderModel(StreamedModel):
    """A LangChain model whose failures are `ModelError`s and whose chunks are like ours.

    Text is in `content`, reasoning in `additional_kwargs`, the reason of the end has OpenAI's
    names. Callers see one model run: that of this model.
    """

    inner: BaseChatModel
    name_for_people: str

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type  # noqa: SLF001 - the name in traces

    def bind_tools(
        self,
        tools: Sequence[Tool],
        *,
        tool_choice: str | None = None,
        **kwargs: object,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind the tools: the provider's package gives them its own form at each call."""
        return self.bind(**offered(tools, tool_choice), **kwargs)

    async def aclose(self) -> None:
        """Do nothing: the provider's package owns its connections."""

    async def chunks(
        self, messages: list[BaseMessage], limits: TimeLimits, **options: object
    ) -> AsyncGenerator[AIMessageChunk]:
        """See `StreamedModel.chunks`."""
        timer = Timer(limits)
        stream = self.inner._astream(messages, **self._of_provider(options))  # noqa: SLF001 - one run in the trace
        silent: AIMessageChunk | None = None  # what only counts tokens joins what follows it
        finished = False
        model_name = None
        try:
            while (generation := await self._next(stream, timer)) is not None:
                chunk, metadata = _like_ours(generation)
                model_name = metadata.get("model_name") or metadata.get("model") or model_name
                if (reason := _finish_reason(metadata)) and not finished:
                    finished = True
                    chunk.response_metadata = {
                        "finish_reason": reason,
                        "model_name": model_name or self.name_for_people,
                    }
                chunk = chunk if silent is None else silent + chunk
                if not _says_something(chunk):
                    silent = chunk
                    continue
                silent = None
                timer.progress()
                yield chunk
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        if not finished:
            raise model_error("interrupted", self.name_for_people)

    def _of_provider(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with OpenAI's tools and choice in the provider's own form.

        Raises:
            ModelError: The provider's package has no such form.
        """
        if options.get("response_format"):
            raise model_error("unsupported", self.name_for_people, NO_FORM)
        own = {name: value for name, value in options.items() if name not in _OF_OPENAI}
        if self._is_anthropic and (user := options.get("user")):
            own["metadata"] = {"user_id": user}
        if not (tools := options.get("tools")):
            return own
        choice = options.get("tool_choice")
        if isinstance(choice, dict):
            choice = choice["function"]["name"]
        elif choice == "required":
            choice = "any"
        no_call = choice == "none"  # which some packages take for the name of a tool
        try:
            bound = self.inner.bind_tools(tools, tool_choice=None if no_call else choice)
        except NotImplementedError:
            raise model_error("unsupported", self.name_for_people, NO_TOOLS) from None
        if no_call:
            own["tool_choice"] = {"type": "none"} if self._is_anthropic else "none"
        return {**getattr(bound, "kwargs", {}), **own}

    @property
    def _is_anthropic(self) -> bool:
        return "anthropic" in self.inner._llm_type  # noqa: SLF001 - LangChain's way to tell

    async def _next(
        self, stream: AsyncIterator[ChatGenerationChunk], timer: Timer
    ) -> ChatGenerationChunk | None:
        try:
            async with timer.waiting():
                return await anext(stream, None)
        except TimeoutError:
            raise timer.error(self.name_for_people) from None
        except Exception as error:
            raise error_of_exception(error, self.name_for_people) from error


def open_other_provider(
    endpoint: Endpoint, limits: TimeLimits, settings: Settings
) -> OtherProviderModel:
    """Make the model. Imports the provider's package, which takes seconds.

    Raises:
        ConfigurationError: The package or the provider's own settings are missing.
    """
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - heavy, rarely needed

    wanted = {"temperature": settings.llm_temperature, "max_tokens": settings.output_tokens}
    choices: dict[str, Any] = {
        name: value for name, value in wanted.items() if value is not None
    }
    if endpoint.base_url is not None:
        choices["base_url"] = endpoint.base_url
    if endpoint.api_key is not None:
        choices["api_key"] = endpoint.api_key.get_secret_value()
    provider = endpoint.provider
    try:
        inner = init_chat_model(
            endpoint.model, model_provider=provider, max_retries=0, **choices
        )
    except ImportError as error:
        package = PACKAGES[provider]
        message = f"The model {endpoint.name} needs a package: pip install {package}"
        raise ConfigurationError(message) from error
    except Exception as error:  # noqa: BLE001 - each package has exceptions of its own
        # Their text may hold what was given as a key: it is not shown.
        message = (
            f"The model {endpoint.name} cannot be set up ({type(error).__name__}). Check the "
            f"key and the other variables that {provider} needs."
        )
        raise ConfigurationError(message) from None
    return OtherProviderModel(inner=inner, limits=limits, name_for_people=endpoint.label)


def _like_ours(generation: ChatGenerationChunk) -> tuple[AIMessageChunk, Mapping[str, Any]]:
    """Return a chunk of ours and what the provider tells about the answer."""
    message = generation.message
    metadata = {**(generation.generation_info or {}), **message.response_metadata}
    extra: dict[str, Any] = {}
    text = message.content
    if isinstance(text, list):
        text, reasoning = _texts(text)
    else:
        reasoning = message.additional_kwargs.get("reasoning_content") or ""
    if reasoning:
        extra["reasoning_content"] = reasoning
    chunk = AIMessageChunk(content=text, additional_kwargs=extra, id=message.id)
    if isinstance(message, AIMessageChunk):
        chunk.tool_call_chunks = message.tool_call_chunks
        chunk.chunk_position = message.chunk_position
    elif isinstance(message, AIMessage):
        chunk.tool_call_chunks = [
            tool_call_chunk(
                name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index
            )
            for index, call in enumerate(message.tool_calls)
        ]
    if isinstance(message, AIMessage):
        chunk.usage_metadata = message.usage_metadata
    return chunk, metadata


def _texts(blocks: Sequence[str | dict[Any, Any]]) -> tuple[str, str]:
    text = ""
    reasoning = ""
    for block in blocks:
        if isinstance(block, str):
            text += block
        elif block.get("type") == "text":
            text += block.get("text") or ""
        elif block.get("type") in {"thinking", "reasoning"}:
            reasoning += block.get("thinking") or block.get("reasoning") or ""
    return text, reasoning


def _finish_reason(metadata: Mapping[str, Any]) -> str | None:
    for name in ("finish_reason", "stop_reason", "done_reason"):
        if reason := finish_reason(metadata.get(name)):
            return reason
    return None


def _says_something(chunk: AIMessageChunk) -> bool:
    return bool(
        chunk.content
        or chunk.additional_kwargs
        or chunk.tool_call_chunks
        or chunk.response_metadata
    )
