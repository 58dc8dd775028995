"""The way over HTTP to one OpenAI-compatible endpoint."""

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from chatbot.errors import ModelError
from chatbot.models.failures import error_of_status, model_error
from chatbot.models.time_limits import Timer
from chatbot.tls import tls_context

CONNECT_SECONDS = 10.0
DRAIN_SECONDS = 0.2
ERROR_BYTES = 64 * 1024
STALE_CONNECTIONS = 3  # kept connections that the server closed meanwhile


class EndpointClient:
    """Posts JSON to one endpoint, with one HTTP session for each event loop that uses it.

    `name` is what errors call the endpoint. The key is sent to the endpoint alone: redirects
    are not followed.
    """

    def __init__(self, base_url: str, *, api_key: str, name: str) -> None:
        self.name = name
        self.secret = api_key
        address = URL(base_url)
        self._base = address.with_user(None)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "ragflow-chatbot",
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        elif address.user:
            login = f"{address.user}:{address.password or ''}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self._sessions: dict[asyncio.AbstractEventLoop, _Kept] = {}
        self._proxy: str | None = None

    @asynccontextmanager
    async def post(
        self, path: str, body: Mapping[str, Any], timer: Timer
    ) -> AsyncIterator["Received"]:
        """Post `body` and yield the reply, of which nothing is read yet.

        Leaving the context, also by cancellation, closes a connection that is still busy.

        Raises:
            ModelError: The endpoint could not be reached or refused the request.
        """
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        below = f"{self._base.raw_path.rstrip('/')}{path}"
        url = self._base.with_path(below, encoded=True, keep_query=True)
        response = await self._begin(url, data, timer)
        try:
            received = Received(response, timer, self.name)
            await self._check(response, received)
            yield received
        except BaseException:
            response.close()
            raise
        finally:
            timer.close()
        await _finish(response)

    async def aclose(self) -> None:
        """Close the connections of every event loop."""
        for loop in list(self._sessions):
            await self._close(loop)

    async def _begin(self, url: URL, data: bytes, timer: Timer) -> aiohttp.ClientResponse:
        for _ in range(STALE_CONNECTIONS):
            context = SimpleNamespace(reused=False)
            try:
                async with timer.waiting():
                    session = await self._session()
                    return await session.post(
                        url,
                        data=data,
                        headers=self._headers,
                        allow_redirects=False,
                        proxy=self._proxy,
                        trace_request_ctx=context,
                    )
            except aiohttp.ServerTimeoutError as error:
                raise model_error("connection", self.name) from error
            except TimeoutError:
                raise timer.error(self.name) from None
            except (aiohttp.ClientError, OSError) as error:
                if not context.reused:
                    raise self._unreachable(error) from error
        raise model_error("connection", self.name)

    def _unreachable(self, error: Exception) -> ModelError:
        if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLError):
            return model_error("connection", self.name, "its TLS certificate is not trusted")
        if isinstance(error, aiohttp.InvalidURL):
            return model_error("connection", self.name, "its address is not valid")
        if isinstance(error, aiohttp.ClientResponseError):
            return model_error("protocol", self.name, "its reply is not HTTP")
        return model_error("connection", self.name)

    async def _check(self, response: aiohttp.ClientResponse, received: "Received") -> None:
        if response.status == HTTPStatus.OK:
            return
        body = b""
        with contextlib.suppress(ModelError):  # the status alone says enough
            while len(body) < ERROR_BYTES and (part := await received.read()):
                body += part
        raise error_of_status(response.status, response.headers, body, self.name, self.secret)

    async def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if (kept := self._sessions.get(loop)) is not None:
            return kept.session
        context: ssl.SSLContext | bool = True
        if self._base.scheme == "https":
            context = await asyncio.to_thread(tls_context)
        self._proxy = _proxy_for(str(self._base))
        for other in [other for other in self._sessions if other.is_closed()]:
            del self._sessions[other]
        if loop not in self._sessions:  # another task may have been faster
            closing = _session_of_loop(context)
            self._sessions[loop] = _Kept(await anext(closing), closing)
        return self._sessions[loop].session

    async def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        closing = self._sessions.pop(loop).closing
        if loop is asyncio.get_running_loop() or not loop.is_running():
            await closing.aclose()
        else:
            closed = asyncio.run_coroutine_threadsafe(_close(closing), loop)
            await asyncio.wrap_future(closed)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session and the generator that closes it."""

    session: aiohttp.ClientSession
    closing: AsyncGenerator[aiohttp.ClientSession]


async def _session_of_loop(
    context: ssl.SSLContext | bool,  # noqa: FBT001 - aiohttp's own type
) -> AsyncGenerator[aiohttp.ClientSession]:
    """Yield a session and close it at the end, at the latest when asyncio ends the loop."""
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(_note_reuse)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=30),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        trace_configs=[tracing],
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        yield session


async def _close(closing: AsyncGenerator[aiohttp.ClientSession]) -> None:
    await closing.aclose()


class Received:
    """A reply whose body is read in the pieces in which it comes."""

    def __init__(self, response: aiohttp.ClientResponse, timer: Timer, endpoint: str) -> None:
        self._content = response.content
        self._timer = timer
        self._endpoint = endpoint

    async def read(self) -> bytes:
        """Return what has arrived, waiting for at least one byte; nothing at the end.

        Raises:
            ModelError: A time limit was passed, or the connection broke.
        """
        try:
            self._timer.wait(self._give_up)
            return await self._content.readany()
        except TimeoutError:
            raise self._timer.error(self._endpoint) from None
        except (aiohttp.ClientError, OSError, RuntimeError) as error:  # the last: closed by us
            raise model_error("interrupted", self._endpoint) from error
        finally:
            self._timer.waited()

    def _give_up(self) -> None:
        self._content.set_exception(TimeoutError())


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Read the end of the body, so that the connection can serve again; else close it."""
    try:
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while await response.content.readany():
                    pass
    finally:  # also where the reader is cancelled
        response.close()  # changes nothing once the end was read


async def _note_reuse(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _parameters: object
) -> None:
    context.trace_request_ctx.reused = True


def _proxy_for(url: str) -> str | None:
    parts = urlsplit(url)
    if proxy_bypass(parts.netloc) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if proxy and proxy.startswith("http") else None  # SOCKS is not spoken
