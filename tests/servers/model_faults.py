"""The ways in which the scripted model server can fail."""

import asyncio
from collections.abc import Mapping

from tests.servers.loopback import Reply
from tests.servers.model_scripts import ChatRequest, Script


def refuse(
    status: int,
    error: object = "refused",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Script:
    """Refuse with a status: an error object or its message, or any `body`."""
    content = {"message": error} if isinstance(error, str) else error

    async def script(_: ChatRequest, reply: Reply) -> None:
        reply.extra.extend((headers or {}).items())
        if body is None:
            await reply.json({"error": content}, status=status)
        else:
            await reply.send(body, status=status, content_type="text/plain")

    return script


def whole(data: object) -> Script:
    """Send one JSON body with status 200, also to who asked for a stream."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.json(data)

    return script


def html() -> Script:
    """Send a web page with status 200."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        page = b"<!doctype html><html><body>Welcome</body></html>"
        await reply.send(page, content_type="text/html")

    return script


def raw(data: bytes) -> Script:
    """Send bytes that may not even be HTTP, and close."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.raw(data)
        reply.close()

    return script


def hang() -> Script:
    """Say nothing at all until the client goes away."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.closed_by_client()

    return script


def reset() -> Script:
    """Break the connection before the first byte."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        reply.reset()

    return script


def heartbeats(every: float = 0.02) -> Script:
    """Send comments for ever, and never a token."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.start()
        while True:
            await reply.chunk(b": keep-alive\n\n")
            await asyncio.sleep(every)

    return script


def slow_head(every: float = 0.02) -> Script:
    """Send the head of the reply byte by byte, and never its end."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            await reply.raw(b"x")
            await asyncio.sleep(every)

    return script
