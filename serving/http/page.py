"""Serves the web page from memory: a few files, read once."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

FOLDER = Path(__file__).resolve().parent.parent / "page"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A file of the page."""

    body: bytes
    media_type: str
    etag: str


def load_assets(folder: Path = FOLDER) -> Mapping[str, Asset]:
    """Return the page's files by their path below the folder. Reads the disk."""
    found = (path for path in folder.rglob("*") if path.suffix in MEDIA_TYPES)
    return {path.relative_to(folder).as_posix(): _asset(path) for path in sorted(found)}


@router.api_route("/", methods=["GET", "HEAD"])
async def index(request: Request) -> Response:
    """Return the page itself."""
    return _response(request, "index.html")


@router.api_route("/page/{path:path}", methods=["GET", "HEAD"])
async def asset(path: str, request: Request) -> Response:
    """Return one of its files."""
    return _response(request, path)


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Asset(body=body, media_type=MEDIA_TYPES[path.suffix], etag=etag)


def _response(request: Request, path: str) -> Response:
    assets: Mapping[str, Asset] = request.app.state.page
    if (found := assets.get(path)) is None:
        raise HTTPException(404)
    # Asked for anew each time and answered by 304: an update is seen at once.
    headers = {"ETag": found.etag, "Cache-Control": "no-cache"}
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)
