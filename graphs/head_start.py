"""Begins the answer on a guess, while the router still says whom to ask."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk

from chatbot.tasks import abandon, end
from graphs.metering import Meter
from graphs.prompt import Prompt
from graphs.tracing import SPECULATIVE


class HeadStart:
    """A reply that is asked for early and kept for whoever asks exactly the same.

    So the answer is what it would be without, only sooner: a wrong guess costs a request that
    is cancelled, and nothing of it is shown. `counts` says whether the model has tokens.
    """

    def __init__(
        self,
        guess: Coroutine[Any, Any, Prompt | None],
        model: BaseChatModel,
        *,
        counts: bool = True,
    ) -> None:
        guessing = getattr(model, "guessing", None)  # not every model is a pool
        self._model = model
        self._early = model if guessing is None else guessing()
        self._counts = counts
        self._prompt: Prompt | None = None
        self._chunks: asyncio.Queue[AIMessageChunk | None] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen(guess), name="head start")

    def is_for(self, prompt: Prompt) -> bool:
        """Tell whether this is the reply to that prompt."""
        return self._prompt == prompt

    async def stream(self, asks_again: Callable[[], None]) -> AsyncIterator[AIMessageChunk]:
        """Yield the reply: what has come, then the rest as it comes. Raises what it raised.

        One that failed before its first word is asked for again, which is told: it may have
        failed because it was early, as where an endpoint takes one request at a time.
        """
        if self._early is not self._model:
            cast("Any", self._early).wanted()
        try:
            chunk = await self._chunks.get()
            if chunk is None:
                asks_again()
            reply = self._again() if chunk is None else self._rest(chunk)
            async with aclosing(reply) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            await end(self._listening)

    def cancel(self) -> Meter:
        """End the request, and return what it used for what has come and nobody wants."""
        abandon(self._listening)
        prompt = self._prompt or Prompt(messages=())
        meter = Meter(messages=prompt.messages, tools=prompt.tools, counts=self._counts)
        while not self._chunks.empty():
            if (chunk := self._chunks.get_nowait()) is not None:
                meter.take(chunk)
        return meter

    async def _rest(self, chunk: AIMessageChunk | None) -> AsyncGenerator[AIMessageChunk]:
        while chunk is not None:
            yield chunk
            chunk = await self._chunks.get()
        await self._listening

    def _again(self) -> AsyncGenerator[AIMessageChunk]:
        assert self._prompt is not None  # noqa: S101 - see `is_for`
        return cast("AsyncGenerator[AIMessageChunk]", self._prompt.stream(self._model))

    async def _listen(self, guess: Coroutine[Any, Any, Prompt | None]) -> None:
        try:
            self._prompt = await guess
            if self._prompt is not None:
                reply = cast("Any", self._prompt.stream(self._early, SPECULATIVE))
                async with aclosing(reply) as chunks:
                    async for chunk in chunks:
                        self._chunks.put_nowait(chunk)
        finally:
            self._chunks.put_nowait(None)
