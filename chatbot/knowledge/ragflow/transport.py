"""Sends what the SDK of RAGFlow describes: without blocking, and within deadlines."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp

from chatbot.errors import ConfigurationError
from chatbot.knowledge.ragflow.breaker import CircuitBreaker
from chatbot.knowledge.ragflow.connection import CONNECT_SECONDS, Connection, Envelope
from chatbot.knowledge.ragflow.errors import (
    UNAUTHORIZED,
    RagflowError,
    RagflowTimeoutError,
    too_late,
)
from chatbot.knowledge.ragflow.request import Call, DescribingRAGFlow, Request, described

RETRY_SECONDS = (0.2, 0.8)
RECHECK_SECONDS = 1.0
DEADLINE_SHARE = 0.85  # of the limit of whoever waits, to be heard before it strikes
_API = re.compile(r"/*(?:api/*(?:v1/*)?)?$")  # given by people who know where the API is
ATTEMPT_SHARE = 2 / 3  # of the deadline, so that there is time for another attempt


class RagflowTransport(DescribingRAGFlow):
    """The SDK's `RAGFlow`, whose calls are sent by `fetch`, `submit` and `stream`.

    Pass the SDK call as a function: `await transport.fetch(lambda: transport.list_chats())`.
    A read takes less than `timeout_seconds` in total. It is tried again after each of
    `retry_seconds`, with jitter, and with a refused key once after `recheck_seconds`. `close`
    ends the connections.

    Raises:
        ConfigurationError: The key cannot be one.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout_seconds: float = 15,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        key = key.strip()
        if not key.isascii() or not key.isprintable():
            message = "RAGFLOW_API_KEY must be printable ASCII characters."
            raise ConfigurationError(message)
        super().__init__(key, _API.sub("", base_url.strip()))
        self.connection = Connection(self.api_url, key)
        self.timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._recheck_seconds = recheck_seconds
        self._key_refused = False
        self._breaker = CircuitBreaker(self._probe)

    async def fetch(self, call: Call) -> Envelope:
        """Return the reply to a call that only reads. It is repeated while that may help.

        Raises:
            RagflowError: There was no usable reply within the deadline.
        """
        request = described(call)
        await self._breaker.admit()
        seconds = self.timeout_seconds * DEADLINE_SHARE
        met: list[RagflowError] = []
        try:
            async with asyncio.timeout(seconds):
                return await self._repeated(request, seconds, met)
        except TimeoutError:
            error: RagflowError = too_late(seconds)
        except RagflowError as raised:
            error = raised
        self._note(error)
        if met and isinstance(error, RagflowTimeoutError):
            error = met[-1]  # what RAGFlow has said before tells more
        raise error

    async def submit(self, call: Call, *, timeout_seconds: float | None = None) -> Envelope:
        """Return the reply to a call that changes something. It is sent once.

        Raises:
            RagflowError: There was no usable reply, so what it did is not known.
        """
        request = described(call)
        await self._breaker.admit()
        seconds = timeout_seconds or self.timeout_seconds * DEADLINE_SHARE
        try:
            async with asyncio.timeout(seconds):
                return await self._checked(request, seconds, [])
        except TimeoutError:
            raise too_late(seconds) from None
        except RagflowTimeoutError:
            raise
        except RagflowError as error:
            self._note(error)
            raise

    @asynccontextmanager
    async def stream(
        self, call: Call, *, silence_seconds: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open the reply to a call, to be read as it comes.

        `silence_seconds` may pass without a byte, the first one included. The call is sent once
        more if the connection broke before the reply began, never later. Its failure tells
        little about RAGFlow as a whole, since a model is behind it: the circuit stays closed.

        Raises:
            RagflowError: The connection failed, also while the reply is read, or the status
                says that there is no reply.
        """
        request = described(call)
        await self._breaker.admit()
        async with AsyncExitStack() as stack:
            response = await self._opened(stack, request, silence_seconds)
            self._breaker.succeeded()
            yield response

    async def close(self) -> None:
        """Close the connections and end what runs in the background."""
        await self._breaker.close()
        await self.connection.close()

    async def _opened(
        self, stack: AsyncExitStack, request: Request, silence: float
    ) -> aiohttp.ClientResponse:
        for pause in self._retry_seconds[:1]:
            try:
                return await self._opened_once(stack, request, silence)
            except RagflowTimeoutError:
                raise
            except RagflowError as error:
                if not error.transient:
                    raise
                await asyncio.sleep(pause)
        return await self._opened_once(stack, request, silence)

    async def _opened_once(
        self, stack: AsyncExitStack, request: Request, silence: float
    ) -> aiohttp.ClientResponse:
        async with AsyncExitStack() as attempt:
            reply = self.connection.send(request, silence_seconds=silence)
            response = await attempt.enter_async_context(reply)
            self.connection.check_status(response)
            stack.push_async_exit(attempt.pop_all())
        return response

    async def _repeated(
        self, request: Request, seconds: float, met: list[RagflowError]
    ) -> Envelope:
        """Send the request until there is a reply; `met` takes what is not the end of it."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        delays = iter(self._retry_seconds)
        while True:
            try:
                return await self._checked(request, seconds * ATTEMPT_SHARE, met)
            except RagflowError as error:
                met.append(error)
                delay = next(delays, None)
                if delay is None or not error.transient or self._breaker.is_open:
                    raise
                jittered = random.uniform(delay / 2, delay)  # noqa: S311 - no secret
                pause = max(jittered, error.retry_after or 0)
                if clock() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)

    async def _checked(
        self, request: Request, silence: float, met: list[RagflowError]
    ) -> Envelope:
        """Send the request; look twice before a key is called bad.

        RAGFlow answers 401 also when its own database is overloaded for a moment.
        """
        try:
            envelope = await self._once(request, silence)
        except RagflowError as error:
            if error.ragflow_code != UNAUTHORIZED or self._key_refused:
                raise
            met.append(error)
            await asyncio.sleep(self._recheck_seconds)
            try:
                envelope = await self._once(request, silence)
            except RagflowError as again:
                self._key_refused = again.ragflow_code == UNAUTHORIZED
                raise
        self._key_refused = False
        return envelope

    async def _once(self, request: Request, silence: float) -> Envelope:
        try:
            async with self.connection.send(request, silence_seconds=silence) as response:
                envelope = await self.connection.envelope(response)
        except RagflowError as error:
            if error.ragflow_code is not None:  # it is there, and says no
                self._breaker.succeeded()
            raise
        self._breaker.succeeded()
        return envelope

    def _note(self, error: RagflowError) -> None:
        """Open the circuit if it was RAGFlow as a whole that did not answer."""
        if error.ragflow_code is None and error.kind == "unavailable":
            self._breaker.failed(error)

    async def _probe(self) -> None:
        """Ask for the health, which needs no key; an old server does not know the path."""
        request = described(lambda: self.get("/system/healthz"))
        async with self.connection.send(request, silence_seconds=CONNECT_SECONDS) as response:
            self.connection.check_status(response)
