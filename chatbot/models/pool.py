"""A chat model made of several endpoints, each of which may fail."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.language_models import LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from chatbot.errors import ModelError
from chatbot.images.blocks import has_images
from chatbot.models.context_window import RESERVED_TOKENS, ContextWindow, window_of
from chatbot.models.endpoints import ABILITIES, Ability, Endpoint
from chatbot.models.pool_call import Manner, PoolCall
from chatbot.models.rotation import EndpointState, Rotation
from chatbot.models.streamed_model import StreamedModel, Tool, offered
from chatbot.models.time_limits import TimeLimits
from chatbot.models.tokens import (
    CautiousCounter,
    TokenCounter,
    beside_the_loop,
    characters_of,
)
from chatbot.tasks import end


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

    manner: Manner = "patient"

    _members: Sequence[Member] = PrivateAttr(default=())
    _rotation: Rotation = PrivateAttr()
    _counter: CautiousCounter = PrivateAttr()
    _context: ContextWindow = PrivateAttr()
    _loading: set[asyncio.Task[None]] = PrivateAttr(default_factory=set)
    _broke_early: list[tuple[int, ModelError]] = PrivateAttr(default_factory=list)

    @classmethod
    def of(
        cls, members: Sequence[Member], limits: TimeLimits, *, output_tokens: int | None = None
    ) -> "ModelPool":
        """Return a pool of these members."""
        pool = cls(limits=limits)
        pool._members = members
        endpoints = [member.endpoint for member in members]
        pool._rotation = Rotation([(each.name, each.weight) for each in endpoints])
        pool._counter = CautiousCounter(each.model for each in endpoints)
        pool._context = ContextWindow(
            counter=pool._counter,
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

    def within(self, seconds: float) -> "ModelPool":
        """Return the same endpoints for calls that are worth no more than this time.

        A slow endpoint is left early enough for another one to answer in time.
        """
        limits = replace(self.limits, total=min(self.limits.total, seconds))
        return self.model_copy(update={"limits": limits, "manner": "hurried"})

    def guessing(self) -> "ModelPool":
        """Return the same endpoints for calls that are made beside another one, on a guess.

        An endpoint may refuse only that there are two at once: what fails is not repeated, nor
        held against it before the call is `wanted`; one that has failed lately is left alone.
        """
        early = self.model_copy(update={"manner": "tentative"})
        early._broke_early = []  # noqa: SLF001 - of its own class
        return early

    def wanted(self) -> None:
        """Hold against an endpoint what fails after it began to answer, or has already."""
        self.manner = "patient"
        for index, error in self._broke_early:
            self._rotation.failed(index, error, begun=True)
        self._broke_early = []

    def states(self) -> list[EndpointState]:
        """Return how each endpoint does at this moment."""
        return [
            replace(state, model=endpoint.model, address=endpoint.address)
            for state, endpoint in zip(self._rotation.states(), self.endpoints, strict=True)
        ]

    async def aclose(self) -> None:
        """Close the connections of every endpoint."""
        here = asyncio.get_running_loop()
        await end(*(task for task in self._loading if task.get_loop() is here))
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
        call = PoolCall(self.endpoints, self._rotation, able, limits, manner=self.manner)
        written = ""
        while (index := await call.next_endpoint()) is not None:
            begun = False
            stream = self._members[index].model.chunks(messages, call.limits(), **options)
            try:
                async with aclosing(stream):
                    async for chunk in stream:
                        if not begun:
                            begun = True
                            call.answers(index)
                            call.label(chunk, index)
                        written += str(chunk.content)
                        written += chunk.additional_kwargs.get("reasoning_content", "")
                        if "finish_reason" in chunk.response_metadata:
                            await self._count(index, chunk, messages, options, written)
                        yield chunk
            except ModelError as error:
                is_tentative = self.manner == "tentative"
                call.failed(index, error, begun=begun, wanted=begun and not is_tentative)
                if begun:
                    if is_tentative:
                        self._broke_early.append((index, error))
                    error.retry_after = call.retry_after()
                    call.labelled(error)
                    raise
            else:
                return
            finally:
                if not begun:
                    self._rotation.abandoned(index)
        raise call.labelled(call.error())

    async def _count(
        self,
        index: int,
        last: AIMessageChunk,
        messages: Sequence[BaseMessage],
        options: Mapping[str, Any],
        written: str,
    ) -> None:
        """Learn from the usage that was reported, or estimate it and say so."""
        counter = self._counter.of(self._members[index].endpoint.model)
        tools = options.get("tools") or ()
        count = partial(counter.count_messages, messages, tools)
        if (reported := last.usage_metadata) is not None:
            if not any(has_images(message) for message in messages):
                read = await beside_the_loop(counter, characters_of(messages), count)
                counter.correct(counted=read, reported=reported["input_tokens"])
            return
        self._load_later(counter)
        read = await beside_the_loop(counter, characters_of(messages), count)
        wrote = await beside_the_loop(counter, len(written), partial(counter.count, written))
        last.usage_metadata = UsageMetadata(
            input_tokens=read, output_tokens=wrote, total_tokens=read + wrote
        )
        last.response_metadata["usage_estimated"] = True

    def _load_later(self, counter: TokenCounter) -> None:
        """Read a tokenizer for the next estimate: the end of an answer does not wait for it."""
        if not counter.is_loaded and not self._loading:
            task = asyncio.create_task(counter.load(), name="tokenizer")
            self._loading.add(task)
            task.add_done_callback(self._loading.discard)


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
