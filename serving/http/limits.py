"""Refuses bodies that are larger than any question."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.http.paths import is_ours, path_of

BODY_BYTES = 1024 * 1024


class BodyLimit:
    """ASGI middleware: a body of our routes may have `BODY_BYTES`, announced or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what is received, and stop at the limit."""
        if scope["type"] != "http" or not is_ours(path_of(scope)):
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        received = 0
        too_large = announced.isdecimal() and int(announced) > BODY_BYTES

        async def counted() -> Message:
            nonlocal received
            if too_large:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            message = await receive()
            received += len(message.get("body", b""))
            if received > BODY_BYTES:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self._app(scope, counted, send)
