"""What can go wrong between RAGFlow and its clients, by name."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from tests.servers.loopback import Reply, Request

Fault = Callable[[Request, Reply], Awaitable[None]]
PAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


def replied(body: bytes, *, status: int = 200, content_type: str = "application/json") -> Fault:
    """Return the fault of an odd reply."""

    async def fault(_: Request, reply: Reply) -> None:
        await reply.send(body, status=status, content_type=content_type)

    return fault


def enveloped(envelope: object, *, status: int = 200) -> Fault:
    """Return the fault of a JSON reply."""

    async def fault(_: Request, reply: Reply) -> None:
        await reply.json(envelope, status=status)

    return fault


async def _reset(_: Request, reply: Reply) -> None:
    reply.reset()


async def _closed(_: Request, reply: Reply) -> None:
    reply.close()


async def _stalled(_: Request, reply: Reply) -> None:
    await reply.closed_by_client()


async def _cut(_: Request, reply: Reply) -> None:
    await reply.raw(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
        b'{"code": 0, "data": {"chunks": ['
    )
    reply.close()


async def _dripped(_: Request, reply: Reply) -> None:
    await reply.start(content_type="application/json")
    for byte in b'{"code": 0, "data": [], "message": "success"}' * 20:
        await reply.chunk(bytes([byte]))
        await asyncio.sleep(0.02)
    await reply.end()


async def _redirected(_: Request, reply: Reply) -> None:
    reply.extra.append(("Location", "http://127.0.0.1:1/login"))
    await reply.send(b"", status=302)


async def _busy(_: Request, reply: Reply) -> None:
    reply.extra.append(("Retry-After", "0"))
    await reply.send(b"slow down", status=429, content_type="text/plain")


_UNAUTHORIZED = {"code": 401, "data": None, "message": "<Unauthorized '401: Unauthorized'>"}
FAULTS: Mapping[str, Fault] = {
    "html 502": replied(PAGE, status=502, content_type="text/html"),
    "html 503": replied(PAGE, status=503, content_type="text/html"),
    "html 404": replied(b"<html>nothing here</html>", status=404, content_type="text/html"),
    "json 404": enveloped(
        {"code": 404, "data": None, "message": "Not Found: /v1/api/v1/retrieval"}, status=404
    ),
    "html login page": replied(b"<html>log in</html>", content_type="text/html"),
    "empty body": replied(b""),
    "bad json": replied(b'{"code": 0, "data"'),
    "json list": replied(b"[]"),
    "no code": replied(b'{"data": []}'),
    "reset": _reset,
    "no response": _closed,
    "stall": _stalled,
    "cut body": _cut,
    "slow drip": _dripped,
    "redirect": _redirected,
    "too many requests": _busy,
    "401": enveloped(_UNAUTHORIZED, status=401),
    "401 in the body": enveloped(_UNAUTHORIZED),
    "401 html": replied(b"<html>sign in</html>", status=401, content_type="text/html"),
    "403 html": replied(b"<html>forbidden</html>", status=403, content_type="text/html"),
    "no authorization": enveloped({"code": 109, "data": False, "message": "no authorization"}),
    "database down": enveloped(
        {"code": 100, "data": None, "message": "OperationalError('too many connections')"}
    ),
    "unknown model": enveloped(
        {"code": 100, "data": None, "message": "LookupError('Model(x) not authorized')"}
    ),
    "embedding failed": enveloped({"code": 400, "message": "ModelException('embedding')"}),
    "102 without message": enveloped({"code": 102}),
    "102 not found": enveloped({"code": 102, "message": "Chat(nope) not found."}),
    "no chunk found": enveloped(
        {"code": 102, "message": "No chunk found! Check the chunk status please!"}
    ),
    "argument error": enveloped({"code": 101, "message": "invalid orderby field: x"}),
    "success without data": enveloped({"code": 0}),
    "success with null data": enveloped({"code": 0, "data": None, "message": "success"}),
    "success with false data": enveloped({"code": 0, "data": False}),
}
