"""Keeps other web sites out and gives every response of ours its security headers."""

import logging
import re
from http import HTTPStatus
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.http.errors import error_response
from serving.http.paths import is_ours, path_of

logger = logging.getLogger(__name__)

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::\d+)?")
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Protection:
    """ASGI middleware around our routes; what else the server has passes untouched.

    A host name that is neither loopback nor in `ALLOWED_HOSTS` is refused, so that no web site
    reaches a local server by pointing its own name at it; data is refused to pages of other
    origins. A fault of ours is logged and told plainly.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or answer with security headers."""
        path = path_of(scope) if scope["type"] == "http" else ""
        if not is_ours(path):
            await self._app(scope, receive, send)
            return
        started = False

        async def protected(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(MutableHeaders(scope=message), path)
            await send(message)

        settings = scope["app"].state.settings
        if (refused := refusal(Headers(scope=scope), path, settings.hosts)) is not None:
            status, code, sentence = refused
            await error_response(status, code, sentence)(scope, receive, protected)
            return
        try:
            await self._app(scope, receive, protected)
        except Exception:
            if started:
                raise
            logger.exception("%s %s failed", scope["method"], path)
            message = "Something went wrong on our side. The log has the details."
            response = error_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", message)
            await response(scope, receive, protected)


def refusal(
    headers: Headers, path: str, allowed: frozenset[str]
) -> tuple[HTTPStatus, str, str] | None:
    """Return why the request is refused: status, code, and a sentence; or nothing."""
    host = headers.get("host", "")
    name = _host_name(host)
    if not (is_loopback(name) or name in allowed):
        sentence = "This host name is not served. ALLOWED_HOSTS names those that are."
        return HTTPStatus.MISDIRECTED_REQUEST, "host_not_allowed", sentence
    if path.startswith(("/api/", "/v1/")) and not _same_origin(headers, host, allowed):
        sentence = "Pages of other web sites may not use this service."
        return HTTPStatus.FORBIDDEN, "origin_not_allowed", sentence
    return None


def is_loopback(name: str) -> bool:
    """Return whether a host name can only mean this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _same_origin(headers: Headers, host: str, allowed: frozenset[str]) -> bool:
    """Return whether no other web site sent this; only browsers send an origin."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
    scheme, _, sender = origin.partition("://")
    known = sender.lower() == host.lower() or _host_name(sender) in allowed
    return scheme in {"http", "https"} and known


def _host_name(address: str) -> str:
    """Return the name in `name`, `name:port` or `[IPv6]:port`; "" where it is none of them."""
    found = _HOST.fullmatch(address.lower())
    return found[1].strip("[]").rstrip(".") if found else ""


def _add_headers(headers: MutableHeaders, path: str) -> None:
    is_page = path == "/" or path.startswith("/page/")
    headers.update(HEADERS)
    headers["Content-Security-Policy"] = PAGE_POLICY if is_page else DATA_POLICY
