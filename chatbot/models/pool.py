"""A chat model made of several endpoints, each of which may fail."""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import structlog
from langchain_core.language_models import LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from chatbot.errors import ModelError, ModelFailure
from chatbot.models.context_window import RESERVED_TOKENS, ContextWindow, window_of
from chatbot.models.endpoints import ABILITIES, Ability, Endpoint
from chatbot.models.images import has_images
from chatbot.models.rotation import RESTS, EndpointState, Rotation
from chatbot.models.streamed_model import StreamedModel, Tool, offered
from chatbot.models.time_limits import TimeLimits
from chatbot.models.tokens import TokenCounter

RETRIES = 2
BACKOFF_SECONDS = 0.4
POLL_SECONDS = 0.05
_WORDS: Mapping[ModelFailure, str] = {
    "rate_limit": "too many requests",
    "auth": "the API key was refused",
    "timeout": "no answer in time",
    "connection": "no connection",
    "server": "an error of the server",
    "protocol": "a reply that is not an answer",
    "interrupted": "a cut answer",
}
# Failures that pass by themselves, often within a second.
_PASSING: frozenset[ModelFailure] = frozenset({"connection", "server", "interrupted"})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Member:
    """An endpoint and the model that speaks to it."""

    endpoint: Endpoint
    model: StreamedModel


class ModelPool(StreamedModel):
    """Sends each call to one endpoint, and to the next one if that fails before it answers.

    Nothing is repeated once a first piece of the answer is out. Where every endpoint that can
    do what is asked has failed in this call, those whose failure may have passed are tried
    again, twice at most, with growing pauses. Where all rest already, the call fails at once.
    """

    _members: Sequence[Member] = PrivateAttr(default=())
    _rotation: Rotation = PrivateAttr()
    _context: ContextWindow = PrivateAttr()

    @classmethod
    def of(
        cls, members: Sequence[Member], limits: TimeLimits, *, output_tokens: int | None = None
    ) -> "ModelPool":
        """Return a pool of these members."""
        pool = cls(limits=limits)
        pool._members = members
        endpoints = [member.endpoint for member in members]
        pool._rotation = Rotation([(each.name, each.weight) for each in endpoints])
        pool._context = ContextWindow(
            counter=TokenCounter(endpoints[0].model),
            tokens=min(each.context_window or window_of(each.model) for each in endpoints),
            reserved=output_tokens or RESERVED_TOKENS,
        )
        return pool

    @property
    def context(self) -> ContextWindow:
        """What every one of the endpoints can read at once."""
        return self._context

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The endpoints, in the order of the settings."""
        return [member.endpoint for member in self._members]

    def states(self) -> list[EndpointState]:
        """Return how each endpoint does at this moment."""
        return self._rotation.states()

    async def aclose(self) -> None:
        """Close the connections of every endpoint."""
        for member in self._members:
            await member.model.aclose()

    def bind_tools(
        self,
        tools: Sequence[Tool],
        *,
        tool_choice: str | None = None,
        **kwargs: object,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind the tools. Each endpoint gets them in its own form."""
        return self.bind(**offered(tools, tool_choice), **kwargs)

    @property
    def _llm_type(self) -> str:
        return "model-pool"

    def _get_ls_params(
        self, stop: list[str] | None = None, **kwargs: object
    ) -> LangSmithParams:
        parameters = super()._get_ls_params(stop=stop, **kwargs)
        parameters["ls_provider"] = self._members[0].endpoint.provider
        models = dict.fromkeys(member.endpoint.model for member in self._members)
        parameters["ls_model_name"] = ", ".join(models)
        return parameters

    async def chunks(
        self, messages: list[BaseMessage], limits: TimeLimits, **options: object
    ) -> AsyncGenerator[AIMessageChunk]:
        """See `StreamedModel.chunks`."""
        able = _able(self._members, _needs(messages, options))
        call = _Call(self._members, self._rotation, able, limits)
        written = ""
        while (index := await call.next_endpoint()) is not None:
            begun = False
            stream = self._members[index].model.chunks(messages, call.limits(), **options)
            try:
                async with aclosing(stream):
                    async for chunk in stream:
                        if not begun:
                            begun = True
                            self._rotation.succeeded(index)
                        written += str(chunk.content)
                        written += chunk.additional_kwargs.get("reasoning_content", "")
                        if "finish_reason" in chunk.response_metadata:
                            await self._count(chunk, messages, options, written)
                            call.label(chunk, index)
                        yield chunk
            except ModelError as error:
                call.failed(index, error)
                if begun:
                    raise
            else:
                return
            finally:
                if not begun:
                    self._rotation.abandoned(index)
        raise call.error()

    async def _count(
        self,
        last: AIMessageChunk,
        messages: Sequence[BaseMessage],
        options: Mapping[str, Any],
        written: str,
    ) -> None:
        """Learn from the usage that was reported, or estimate it and say so."""
        counter = self._context.counter
        if (reported := last.usage_metadata) is not None:
            if not counter.is_exact:
                counted = counter.count_messages(messages, options.get("tools") or ())
                counter.correct(counted=counted, reported=reported["input_tokens"])
            return
        await counter.load()
        read = counter.count_messages(messages, options.get("tools") or ())
        wrote = counter.count(written)
        last.usage_metadata = UsageMetadata(
            input_tokens=read, output_tokens=wrote, total_tokens=read + wrote
        )
        last.response_metadata["usage_estimated"] = True


class _Call:
    """One call on its way through the endpoints that can do what it asks."""

    def __init__(
        self,
        members: Sequence[Member],
        rotation: Rotation,
        able: Collection[int],
        limits: TimeLimits,
    ) -> None:
        self._names = [member.endpoint.name for member in members]
        self._rotation = rotation
        self._able = able
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        self._deadline = self._clock() + limits.total
        self._untried = set(able)
        self._failures: dict[int, ModelError] = {}
        self._attempts: list[dict[str, str]] = []
        self._retries = 0

    def limits(self) -> TimeLimits:
        """Return the limits of the next attempt: all share the time of the call."""
        return replace(self._limits, total=self._left)

    async def next_endpoint(self) -> int | None:
        """Return the endpoint to ask now, or nothing where the call has failed."""
        if any(error.kind not in RESTS for error in self._failures.values()):
            return None
        while self._left > 0:
            if (index := self._rotation.choose(self._untried)) is not None:
                self._untried.discard(index)
                return index
            if not self._rotation.probing(self._untried):
                return await self._again()
            await asyncio.sleep(POLL_SECONDS)  # another call finds out how it does
        return None

    def failed(self, index: int, error: ModelError) -> None:
        """Note that an endpoint failed."""
        self._rotation.failed(index, error)
        self._failures[index] = error
        self._attempts.append({"endpoint": self._names[index], "kind": error.kind})
        log.warning(
            "model_attempt_failed",
            endpoint=self._names[index],
            kind=error.kind,
            retry_after=error.retry_after,
            cause=type(error.__cause__).__name__ if error.__cause__ else None,
        )

    def label(self, chunk: AIMessageChunk, index: int) -> None:
        """Write on the last chunk which endpoint answered and which failed before."""
        chunk.response_metadata["endpoint"] = self._names[index]
        if self._attempts:
            chunk.response_metadata["attempts"] = self._attempts

    def error(self) -> ModelError:
        """Return why nothing answered, and when the first endpoint is ready again."""
        seconds, kind = self._rotation.seconds_left(self._able)
        if self._failures:
            error = list(self._failures.values())[-1]
            if error.kind not in RESTS or error.retry_after is not None:
                return error
            return ModelError(error.kind, error.message, retry_after=round(seconds, 1))
        message = (
            f"Every language model that is set rests after a failure ({_WORDS[kind]}). "
            f"Try again in {max(1, math.ceil(seconds))} seconds."
        )
        return ModelError(kind, message, retry_after=round(seconds, 1))

    async def _again(self) -> int | None:
        """Return an endpoint whose failure in this call may have passed, after a pause."""
        passing = [
            index
            for index, error in self._failures.items()
            if error.kind in _PASSING and error.retry_after is None
        ]
        if not passing or self._retries == RETRIES:
            return None
        pause = BACKOFF_SECONDS * 2**self._retries * random.uniform(0.5, 1)  # noqa: S311 - jitter
        if pause >= self._left:
            return None
        await asyncio.sleep(pause)
        index = passing[self._retries % len(passing)]
        self._retries += 1
        self._rotation.retry(index)
        return index

    @property
    def _left(self) -> float:
        return self._deadline - self._clock()


def _needs(messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> frozenset[Ability]:
    """Return what an endpoint must be able to do for this call."""
    needs: set[Ability] = set()
    if any(has_images(message) for message in messages):
        needs.add("vision")
    if options.get("tools"):
        needs.add("tools")
    wanted = options.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        needs.add("json_schema")
    return frozenset(needs)


def _able(members: Sequence[Member], needs: frozenset[Ability]) -> list[int]:
    able = [i for i, member in enumerate(members) if needs <= member.endpoint.abilities]
    if able:
        return able
    missing = ", ".join(ABILITIES[need] for need in sorted(needs))
    message = f"No language model that is set {missing}. Choose another one in the settings."
    raise ModelError("unsupported", message)
