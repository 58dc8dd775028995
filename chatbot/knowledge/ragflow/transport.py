"""Sends the SDK's requests over pooled connections, without blocking, within deadlines."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from chatbot.knowledge.ragflow.breaker import CircuitBreaker
from chatbot.knowledge.ragflow.errors import (
    SUCCESS,
    UNAUTHORIZED,
    RagflowError,
    one_line,
    refused,
    unreachable,
    unusable,
)
from chatbot.knowledge.ragflow.request import Call, DescribingRAGFlow, Request, described

RETRY_SECONDS = (0.2, 0.8)
RECHECK_SECONDS = 1.0
CONNECT_SECONDS = 3.0
CONNECTIONS = 256
REPLY_BYTES = 64 * 1024 * 1024
SERVER_ERRORS = range(500, 600)
REDIRECTS = range(300, 400)
OK = 200
FORBIDDEN = 403
TOO_MANY = 429

Envelope = Mapping[str, Any]


class RagflowTransport(DescribingRAGFlow):
    """The SDK's `RAGFlow`, whose calls are sent by `fetch`, `submit` and `stream`.

    Pass the SDK call as a function: `await transport.fetch(lambda: transport.list_chats())`.
    A read has `timeout_seconds` in total. It is tried again after each of `retry_seconds`, with
    jitter, and with a refused key once after `recheck_seconds`. Connections are opened in the
    running event loop when first needed; `close` ends them.
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
        super().__init__(key, base_url.rstrip("/"))
        self.timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._recheck_seconds = recheck_seconds
        self._key = key
        self._key_refused = False
        self._opened: aiohttp.ClientSession | None = None
        self._breaker = CircuitBreaker(self._probe)

    async def fetch(self, call: Call, *, timeout_seconds: float | None = None) -> Envelope:
        """Return the reply to a call that only reads. It is repeated while that may help.

        Raises:
            RagflowError: There was no usable reply within the deadline.
        """
        request = described(call)
        await self._breaker.admit()
        seconds = timeout_seconds or self.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._repeated(request, seconds)
        except TimeoutError:
            error = unreachable(_too_late(seconds))
        except RagflowError as raised:
            error = raised
        if error.ragflow_code is None and error.kind == "unavailable":
            self._breaker.failed(error)
        raise error

    async def submit(self, call: Call, *, timeout_seconds: float | None = None) -> Envelope:
        """Return the reply to a call that changes something. It is sent once.

        Raises:
            RagflowError: There was no usable reply, so what it did is not known.
        """
        request = described(call)
        await self._breaker.admit()
        seconds = timeout_seconds or self.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._checked(request, seconds)
        except TimeoutError:
            raise unreachable(_too_late(seconds)) from None

    @asynccontextmanager
    async def stream(
        self, call: Call, *, silence_seconds: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open the reply to a call, to be read as it comes. It is sent once.

        `silence_seconds` may pass without a byte, the first one included.

        Raises:
            RagflowError: The connection failed, also while the reply is read, or the status
                says that there is no reply.
        """
        request = described(call)
        await self._breaker.admit()
        async with self._send(request, silence_seconds) as response:
            self._check_status(response)
            yield response

    async def close(self) -> None:
        """Close the connections and end what runs in the background."""
        await self._breaker.close()
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def _repeated(self, request: Request, seconds: float) -> Envelope:
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        delays = iter(self._retry_seconds)
        while True:
            try:
                return await self._checked(request, seconds * 2 / 3)
            except RagflowError as error:
                delay = next(delays, None)
                if delay is None or not error.transient or self._breaker.is_open:
                    raise
                jittered = random.uniform(delay / 2, delay)  # noqa: S311 - no secret
                pause = max(jittered, error.retry_after or 0)
                if clock() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)

    async def _checked(self, request: Request, silence: float) -> Envelope:
        """Send the request; look twice before a key is called bad.

        RAGFlow answers 401 also when its own database is overloaded for a moment.
        """
        try:
            envelope = await self._once(request, silence)
        except RagflowError as error:
            if error.ragflow_code != UNAUTHORIZED or self._key_refused:
                raise
            await asyncio.sleep(self._recheck_seconds)
            try:
                envelope = await self._once(request, silence)
            except RagflowError as again:
                self._key_refused = again.ragflow_code == UNAUTHORIZED
                raise
        self._key_refused = False
        return envelope

    async def _once(self, request: Request, silence: float) -> Envelope:
        async with self._send(request, silence) as response:
            body = await self.read(response)
            status, content_type = response.status, response.content_type
            if status != UNAUTHORIZED:
                self._check_status(response)
        self._breaker.succeeded()
        return self._envelope(status, content_type, body)

    @asynccontextmanager
    async def _send(
        self, request: Request, silence: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open the reply; what fails until it is closed again becomes a `RagflowError`."""
        form = None
        if request.files:
            form = aiohttp.FormData(quote_fields=False)
            for field, (name, blob) in request.files:
                form.add_field(field, blob, filename=name)
        try:
            async with self._session().request(
                request.method,
                self.api_url + request.path,
                params=request.query,
                json=request.json,
                data=form,
                headers=self.authorization_header,
                timeout=aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=silence),
                allow_redirects=False,
            ) as response:
                yield response
        except TimeoutError:
            raise unreachable(_too_late(silence)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self.safe(error) or type(error).__name__) from None

    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None or self._opened.closed:
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._opened

    async def read(self, response: aiohttp.ClientResponse, limit: int = REPLY_BYTES) -> bytes:
        """Return the whole body, unless it is larger than any sensible reply.

        Raises:
            RagflowError: It is.
        """
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            if len(body) > limit:
                reason = f"a reply of more than {limit} bytes"
                raise unusable(reason, transient=False)
        return bytes(body)

    def _check_status(self, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status in SERVER_ERRORS or status == TOO_MANY:
            reason = f"its server or a proxy answered with status {status}"
            wait = _retry_after(response.headers.get("Retry-After"))
            raise unreachable(reason, retry_after=wait)
        if status in REDIRECTS:
            reason = f"a redirect (status {status}), which would send the key elsewhere"
            raise unusable(reason, transient=False)

    def _envelope(self, status: int, content_type: str, body: bytes) -> Envelope:
        envelope = parsed(body)
        code = envelope.get("code") if isinstance(envelope, dict) else None
        if (
            not isinstance(envelope, dict)
            or isinstance(code, bool)
            or not isinstance(code, int)
        ):
            if status in {UNAUTHORIZED, FORBIDDEN}:
                raise refused(status, "")
            kind = content_type or "no content type"
            reason = f"status {status}, {kind}, {len(body)} bytes that are not its JSON"
            raise unusable(reason, transient=status == OK)
        if code != SUCCESS:
            raise refused(code, self.safe(envelope.get("message") or ""))
        return envelope

    def safe(self, text: object) -> str:
        """Return what RAGFlow said on one line, without the key."""
        line = one_line(text)
        return line.replace(self._key, "***") if self._key else line

    async def _probe(self) -> None:
        """Ask for the health, which needs no key; an old server does not know the path."""
        request = described(lambda: self.get("/system/healthz"))
        async with self._send(request, CONNECT_SECONDS) as response:
            self._check_status(response)


def parsed(body: bytes | str) -> object:
    """Return the JSON value of `body`, or nothing if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _retry_after(value: str | None) -> float | None:
    return float(value) if value and value.isdecimal() else None


def _too_late(seconds: float) -> str:
    return f"no answer within {seconds:g} seconds"
