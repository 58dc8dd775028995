"""`/api/documents`: the file behind a citation, as it was put in."""

from urllib.parse import quote

from fastapi import APIRouter, Response

from chatbot.domain import SourceFile
from serving.http.errors import NotFoundError
from serving.http.state import Bot
from serving.http.users import Caller

TEXT = "text/plain; charset=utf-8"
# What a browser shows without running anything of it. Markup is shown as the text that it is.
SHOWN = {
    "application/json": TEXT,
    "application/pdf": "application/pdf",
    "image/gif": "image/gif",
    "image/jpeg": "image/jpeg",
    "image/png": "image/png",
    "image/webp": "image/webp",
}

router = APIRouter(prefix="/api/documents", tags=["knowledge"])


@router.get(
    "/{document_id:path}",
    response_class=Response,
    responses={200: {"content": {"*/*": {}}, "description": "The file."}},
)
async def read_document(document_id: str, bot: Bot, caller: Caller) -> Response:
    """Give the file behind a citation, if it belongs to an assistant that may be asked."""
    found = await bot.document(document_id, permitted=caller.assistants)
    if found is None:
        message = "There is no such document."
        raise NotFoundError(message)
    shown = _shown_as(found)
    name = quote(found.name, safe="")
    place = "attachment" if shown is None else "inline"
    headers = {
        "Content-Disposition": f"{place}; filename*=UTF-8''{name}",
        "Cache-Control": "private, no-cache",
    }
    return Response(
        found.content, media_type=shown or "application/octet-stream", headers=headers
    )


def _shown_as(file: SourceFile) -> str | None:
    """Return as what a browser may show the file, or nothing if it may only keep it."""
    kind = file.media_type
    return TEXT if kind.startswith("text/") else SHOWN.get(kind)
