"""Refuses bodies that are larger than any question."""

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chatbot.images.image import MEGABYTE
from serving.http.paths import is_ours, path_of

BODY_BYTES = MEGABYTE
WITH_IMAGES = frozenset({"/api/chat", "/v1/chat/completions"})
IMPORT = "/api/sessions/import"
IMPORT_BYTES = 32 * MEGABYTE  # a long conversation with its images
BASE64 = 4 / 3  # characters for a byte


class BodyLimit:
    """ASGI middleware: a body of our routes may have `BODY_BYTES`, announced or not.

    Where a question may have images, these come on top. A conversation that is brought back
    may have `IMPORT_BYTES`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what is received, and stop at the limit."""
        if scope["type"] != "http" or not is_ours(path_of(scope)):
            await self._app(scope, receive, send)
            return
        most = _most(scope)
        announced = Headers(scope=scope).get("content-length", "")
        received = 0
        too_large = announced.isdecimal() and int(announced) > most

        async def counted() -> Message:
            nonlocal received
            if too_large:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self._app(scope, counted, send)


def _most(scope: Scope) -> int:
    """Return how many bytes the body of this request may have."""
    path = path_of(scope)
    if path == IMPORT:
        return IMPORT_BYTES
    if path not in WITH_IMAGES:
        return BODY_BYTES
    settings = scope["app"].state.settings
    image = settings.image_megabytes * MEGABYTE * BASE64
    return BODY_BYTES + int(settings.images_per_question * image)
