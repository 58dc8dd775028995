"""Sends single requests over pooled connections and checks what comes back."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from chatbot.knowledge.ragflow.errors import (
    SUCCESS,
    UNAUTHORIZED,
    RagflowError,
    one_line,
    refused,
    too_late,
    unreachable,
    unusable,
)
from chatbot.knowledge.ragflow.request import Request
from chatbot.tls import tls_context

CONNECT_SECONDS = 3.0
CONNECTIONS = 256
REPLY_BYTES = 64 * 1024 * 1024
SERVER_ERRORS = range(500, 600)
REDIRECTS = range(300, 400)
OK = 200
FORBIDDEN = 403
TOO_LARGE = 413
TOO_MANY = 429

Envelope = Mapping[str, Any]


class Connection:
    """The way to one RAGFlow. Opened in the running event loop with the first request."""

    def __init__(self, address: str, key: str) -> None:
        self._address = address
        self._key = key
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(
        self, request: Request, *, silence_seconds: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Open the reply to a request; `silence_seconds` may pass without a byte.

        Raises:
            RagflowError: The connection failed, also while the reply is read.
        """
        form = None
        if request.files:
            form = aiohttp.FormData(quote_fields=False)
            for field, (name, blob) in request.files:
                form.add_field(field, blob, filename=name)
        session = await self._opened()
        try:
            async with session.request(
                request.method,
                self._address + request.path,
                params=request.query,
                json=request.json,
                data=form,
                timeout=aiohttp.ClientTimeout(
                    sock_connect=CONNECT_SECONDS, sock_read=silence_seconds
                ),
                allow_redirects=False,
            ) as response:
                yield response
        except TimeoutError:
            raise too_late(silence_seconds) from None
        except (aiohttp.ClientError, OSError) as error:
            # aiohttp's default for TLS says nothing, least of all of an address without any.
            told = self._without_key(error).replace(" ssl:default", "")
            raise unreachable(self._words(error), in_full=told) from None

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """Return the whole body, unless it is larger than any sensible reply.

        Raises:
            RagflowError: It is.
        """
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            if len(body) > REPLY_BYTES:
                reason = f"a reply of more than {REPLY_BYTES} bytes"
                raise unusable(reason, transient=False)
        return bytes(body)

    def check_status(self, response: aiohttp.ClientResponse) -> None:
        """Look whether there is a reply of RAGFlow at all; it has its own errors in the body.

        Raises:
            RagflowError: A proxy or a dying server answered, or the address is another one.
        """
        status = response.status
        if status in SERVER_ERRORS or status == TOO_MANY:
            reason = f"its server or a proxy answered with status {status}"
            wait = response.headers.get("Retry-After", "")
            raise unreachable(reason, retry_after=float(wait) if wait.isdecimal() else None)
        if status == TOO_LARGE:
            message = "RAGFlow, or a proxy before it, takes nothing that large (status 413)."
            raise RagflowError("argument", message, detail=message)
        if status in REDIRECTS:
            reason = f"a redirect (status {status}), which would send the key elsewhere"
            raise unusable(reason, transient=False)

    async def envelope(self, response: aiohttp.ClientResponse) -> Envelope:
        """Return the envelope of a reply that reports success.

        Raises:
            RagflowError: It reports something else, or it is no envelope.
        """
        body, status = await self.read(response), response.status
        if status != UNAUTHORIZED:
            self.check_status(response)
        envelope = parsed(body)
        if not isinstance(envelope, dict) or type(envelope.get("code")) is not int:
            if status in {UNAUTHORIZED, FORBIDDEN}:
                raise refused(status, "")
            kind = response.content_type or "no content type"
            reason = f"status {status}, {kind}, {len(body)} bytes that are not its JSON"
            raise unusable(reason, transient=status == OK)
        if envelope["code"] != SUCCESS:
            raise refused(envelope["code"], self.safe(envelope.get("message") or ""))
        return envelope

    def safe(self, text: object) -> str:
        """Return foreign text on one line of bounded length, without key and addresses."""
        return one_line(self._without_key(text))

    def _without_key(self, text: object) -> str:
        return str(text).replace(self._key, "***") if self._key else str(text)

    def _words(self, error: Exception) -> str:
        """Return why there was no reply, without saying where."""
        match error:
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return "its TLS certificate is not trusted, or it does not speak TLS"
            case aiohttp.ClientConnectorDNSError():
                return "the name of its host is not known"
            case aiohttp.ClientConnectorError():
                return "no connection"
        return self.safe(error) or type(error).__name__

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _opened(self) -> aiohttp.ClientSession:
        if self._session is None and self._address.startswith("https:"):
            await asyncio.to_thread(tls_context)  # read from files once, then kept
        if self._session is None:
            secure = tls_context() if self._address.startswith("https:") else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=CONNECTIONS, ssl=secure),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Authorization": f"Bearer {self._key}"},
            )
        return self._session


def parsed(body: bytes | str) -> object:
    """Return the JSON value of `body`, or nothing if it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
