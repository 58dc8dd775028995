"""Chat models behind any endpoint that speaks OpenAI's chat completions."""

import logging
import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Self

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import ConfigDict, PrivateAttr, SecretStr, model_validator

from chatbot.errors import ModelError
from chatbot.models.completion import Completion
from chatbot.models.endpoint_client import EndpointClient, Received
from chatbot.models.event_stream import EventStream
from chatbot.models.streamed_model import StreamedModel
from chatbot.models.time_limits import TimeLimits, Timer

OPENAI_URL = "https://api.openai.com/v1"
COMPLETIONS = "/chat/completions"
WEB_PAGE = "it is a web page, not a model. The address usually ends with /v1"
TOO_LONG = "its reply is too long"
LONGEST_COMPLETION = 64 * 1024 * 1024
_ONLY_FOR_THE_SDK = ("extra_headers", "extra_query", "timeout", "stream_usage")
_NO_STREAMING = re.compile(r"\bstream(ing)?\b", re.IGNORECASE)

logger = logging.getLogger(__name__)


class OpenAICompatibleModel(StreamedModel, ChatOpenAI):
    """LangChain's OpenAI model with a reader of its own for what comes back.

    LangChain makes the request; the reply is read here, because reasoning, cut streams, time
    limits and other dialects are lost or misread on the usual way, at several times the cost.
    Every failure is a `ModelError`. Each call is one request: whoever retries stands above.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    provider: str = "openai"
    can_stream: bool = True
    reasoning_opened: bool = False
    label: str = ""

    _client: EndpointClient = PrivateAttr()
    _reports_usage: bool = PrivateAttr(default=True)
    _streams: bool = PrivateAttr(default=True)

    @model_validator(mode="after")
    def validate_environment(self) -> Self:
        """Make the client. In LangChain's class this makes those of the OpenAI SDK."""
        base_url = self.openai_api_base or OPENAI_URL
        key = self.openai_api_key
        secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
        name = self.label or self.model_name
        self._client = EndpointClient(base_url, api_key=secret, name=name)
        return self

    @property
    def name_for_people(self) -> str:
        """The endpoint, as errors call it: by its name and its model."""
        return self._client.name

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def chunks(
        self, messages: list[BaseMessage], limits: TimeLimits, **options: object
    ) -> AsyncGenerator[AIMessageChunk]:
        """See `StreamedModel.chunks`. The answer is read as it comes, in one request.

        An endpoint that cannot stream, or report usage while it does, is asked once more
        without: it is known from then on.
        """
        timer = Timer(limits)
        for _ in range(3):
            payload = self._get_request_payload(messages, **options)
            if not payload["stream"]:
                timer.whole()
            try:
                async for chunk in self._ask(payload, timer):
                    yield chunk
            except ModelError as error:
                if not self._learn(error, payload):
                    raise
            else:
                return

    def _learn(self, error: ModelError, payload: Mapping[str, Any]) -> bool:
        """Note what the endpoint cannot do; return whether that is worth another request."""
        if error.kind not in {"bad_request", "unsupported"} or not payload["stream"]:
            return False
        if "stream_options" in error.message and self._reports_usage:
            self._reports_usage = False
            return True
        if _NO_STREAMING.search(error.message):
            self._streams = False
            return True
        return False

    def with_structured_output(
        self,
        schema: Any = None,  # noqa: ANN401 - LangChain's signature
        *,
        method: Literal["function_calling", "json_mode", "json_schema"] = "function_calling",
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Runnable[LanguageModelInput, Any]:
        """Return the model with answers as values, by default through a tool.

        Fewer endpoints know schemas than tools, and LangChain reads the former with the SDK.
        """
        return super().with_structured_output(schema, method=method, **kwargs)

    async def _ask(
        self, payload: Mapping[str, Any], timer: Timer
    ) -> AsyncGenerator[AIMessageChunk]:
        completion = Completion(
            self._client.name, self._client.secret, reasoning_opened=self.reasoning_opened
        )
        async with self._client.post(COMPLETIONS, payload, timer) as received:
            async for chunk in _read(received, completion, timer):
                timer.progress()
                yield chunk
        if completion.stray_tags:
            hint = "where its template holds the opening tag, set reasoning_opened = true"
            facts = {"endpoint": self._client.name, "hint": hint}
            logger.warning("an answer had stray think tags", extra=facts)

    def _get_request_payload(self, input_: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return LangChain's request, made fit for endpoints that are not OpenAI's own."""
        payload = super()._get_request_payload(input_, **kwargs)
        for name in _ONLY_FOR_THE_SDK:
            payload.pop(name, None)
        payload |= payload.pop("extra_body", None) or {}
        payload["stream"] = self.can_stream and self._streams
        if payload["stream"] and self._reports_usage:
            payload["stream_options"] = {"include_usage": True}
        own = self.openai_api_base in {None, OPENAI_URL}
        if not own and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload


async def _read(
    received: Received, completion: Completion, timer: Timer
) -> AsyncGenerator[AIMessageChunk]:
    """Yield the chunks of a reply. Its first byte tells a stream from a whole completion."""
    data = b""
    while not data:
        if not (data := await received.read()):
            break
        data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if data.startswith((b"{", b"[")):
        await _add_whole(data, received, completion)
    elif data.startswith(b"<"):
        raise completion.protocol_error(WEB_PAGE)
    else:
        async for chunk in _read_events(data, received, completion, timer):
            yield chunk
    yield completion.last()


async def _add_whole(data: bytes, received: Received, completion: Completion) -> None:
    parts = [data]
    size = len(data)
    while part := await received.read():
        parts.append(part)
        size += len(part)
        if size > LONGEST_COMPLETION:
            raise completion.protocol_error(TOO_LONG)
    completion.add_json(b"".join(parts))


async def _read_events(
    data: bytes, received: Received, completion: Completion, timer: Timer
) -> AsyncGenerator[AIMessageChunk]:
    """Yield a chunk for each read. Once there is a finish reason, nothing is an error."""
    stream = EventStream()
    ended = finishing = False
    while not ended:
        failure: ModelError | None = None
        try:
            ended = _add_events(stream, data, completion)
        except ModelError as error:
            failure = error
        if chunk := completion.take():
            yield chunk
        if completion.finish_reason is not None:
            if chunk or not finishing:  # some give the reason with every piece
                timer.finishing()
            finishing = True
        elif failure is not None:
            raise failure
        complete = completion.finish_reason is not None and completion.usage is not None
        ended = ended or complete or not data or failure is not None
        if not ended:
            try:
                data = await received.read()
            except ModelError:
                if completion.finish_reason is None:
                    raise
                return


def _add_events(stream: EventStream, data: bytes, completion: Completion) -> bool:
    """Add the events that `data` completes; return whether the stream said that it ends."""
    events = stream.feed(data) if data else stream.end()
    completion.foreign = stream.foreign
    for event in events:
        if event.strip() == b"[DONE]":
            return True
        completion.add_json(event)
    return False
