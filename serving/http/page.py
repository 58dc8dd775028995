"""Serves the web page from memory: a few files, read once."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

FOLDER = Path(__file__).resolve().parent.parent / "page"
INDEX = "index.html"
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
    compressed: bytes
    media_type: str
    etag: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """The page's files by their path, and a version that changes with any of them."""

    version: str
    assets: Mapping[str, Asset]


def load_page(folder: Path = FOLDER) -> Page:
    """Return the page. Reads the disk.

    The page itself names its files below the version: those addresses never change their
    content, so that a browser asks for each of them once. It names all modules, too: a browser
    need not read one to learn of the next.
    """
    found = sorted(path for path in folder.rglob("*") if path.suffix in MEDIA_TYPES)
    bodies = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
    version = _digest(*bodies.values())
    modules = [path for path in bodies if path.startswith("modules/")]
    links = "".join(f'    <link rel="modulepreload" href="/page/{path}">\n' for path in modules)
    index = bodies[INDEX].replace(b"  </head>", f"{links}  </head>".encode())
    bodies[INDEX] = index.replace(b'"/page/', f'"/page/{version}/'.encode())
    return Page(version=version, assets={path: _asset(path, b) for path, b in bodies.items()})


@router.api_route("/", methods=["GET", "HEAD"])
async def index(request: Request) -> Response:
    """Return the page itself."""
    return _response(request, INDEX)


@router.api_route("/page/{path:path}", methods=["GET", "HEAD"])
async def asset(path: str, request: Request) -> Response:
    """Return one of its files."""
    version, _, versioned = path.partition("/")
    if version == request.app.state.page.version:
        return _response(request, versioned, cache="public, max-age=31536000, immutable")
    return _response(request, path)


def _asset(path: str, body: bytes) -> Asset:
    return Asset(
        body=body,
        compressed=gzip.compress(body, mtime=0),
        media_type=MEDIA_TYPES[Path(path).suffix],
        etag=f'"{_digest(body)}"',
    )


def _digest(*bodies: bytes) -> str:
    return hashlib.sha256(b"\0".join(bodies)).hexdigest()[:16]


def _response(request: Request, path: str, *, cache: str = "no-cache") -> Response:
    page: Page = request.app.state.page
    if (found := page.assets.get(path)) is None:
        raise HTTPException(404)
    # Weak: the same file comes compressed and not.
    headers = {"ETag": f"W/{found.etag}", "Cache-Control": cache, "Vary": "Accept-Encoding"}
    if found.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = found.body
    if "gzip" in request.headers.get("accept-encoding", ""):
        body = found.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(body, media_type=found.media_type, headers=headers)
