"""Chat models behind any endpoint that speaks OpenAI's chat completions."""

import logging
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from langchain_core.language_models import LangSmithParams
from langchain_core.messages import AIMessageChunk, BaseMessage
from pydantic import Field, PrivateAttr, SecretStr, model_validator

from chatbot.errors import ModelError
from chatbot.models.completion import Completion
from chatbot.models.completion_request import completion_request, takes_temperature
from chatbot.models.endpoint_client import EndpointClient, Received
from chatbot.models.event_stream import EventStream
from chatbot.models.streamed_model import StreamedModel
from chatbot.models.time_limits import TimeLimits, Timer

OPENAI_URL = "https://api.openai.com/v1"
COMPLETIONS = "/chat/completions"
WEB_PAGE = "it is a web page, not a model. The address usually ends with /v1"
TOO_LONG = "its reply is too long"
LONGEST_COMPLETION = 64 * 1024 * 1024
_NO_STREAMING = re.compile(r"\bstream(ing)?\b", re.IGNORECASE)

logger = logging.getLogger(__name__)


class OpenAICompatibleModel(StreamedModel):
    """A model that is asked over HTTP, in the words of OpenAI's chat completions.

    LangChain's own class is not used: it takes seconds to load, its SDK costs several times as
    much for each chunk, and reasoning, cut streams, time limits and other dialects are lost or
    misread there. Every failure is a `ModelError`. Each call is one request: whoever retries
    stands above.
    """

    model: str
    base_url: str | None = Field(default=None, repr=False)  # it may hold a login
    api_key: SecretStr | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    provider: str = "openai"
    can_stream: bool = True
    reasoning_opened: bool = False
    label: str = ""

    _client: EndpointClient = PrivateAttr()
    _reports_usage: bool = PrivateAttr(default=True)
    _streams: bool = PrivateAttr(default=True)

    @model_validator(mode="after")
    def _make_client(self) -> Self:
        base_url = self.base_url or OPENAI_URL
        host = urlsplit(base_url).netloc.rpartition("@")[2]
        secret = self.api_key.get_secret_value() if self.api_key else ""
        name = self.label or f"{self.model} at {host}"
        self._client = EndpointClient(base_url, api_key=secret, name=name)
        return self

    @property
    def _llm_type(self) -> str:
        return "openai-compatible"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"model_name": self.model, **self._defaults()}

    def _get_ls_params(
        self, stop: list[str] | None = None, **kwargs: object
    ) -> LangSmithParams:
        return {**super()._get_ls_params(stop=stop, **kwargs), "ls_provider": self.provider}

    @property
    def name_for_people(self) -> str:
        """The model and the host that serves it."""
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
            payload = self._payload(messages, options)
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

    def _payload(
        self, messages: Sequence[BaseMessage], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        payload = completion_request(
            self.model,
            messages,
            {**self._defaults(), **options},
            of_openai=self.base_url in {None, OPENAI_URL},
        )
        payload["stream"] = self.can_stream and self._streams
        if payload["stream"] and self._reports_usage:
            payload["stream_options"] = {"include_usage": True}
        return payload

    def _defaults(self) -> Mapping[str, Any]:
        given: dict[str, float | None] = {"max_tokens": self.max_tokens}
        if takes_temperature(self.model):
            given["temperature"] = self.temperature
        return {name: value for name, value in given.items() if value is not None}


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
