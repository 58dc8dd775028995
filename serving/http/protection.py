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
STUDIO = "smith.langchain.com"
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
    """ASGI middleware around our routes, and a guard before those of the server it runs in.

    A host name that is neither loopback nor in `ALLOWED_HOSTS` is refused, so that no web site
    reaches a local server by pointing its own name at it; data is refused to pages of other
    origins. A fault of ours is logged and told plainly. The server's own routes, which begin
    runs and give threads away, are guarded as far as nobody has to sign in at them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or answer with security headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, state, headers = path_of(scope), scope["app"].state, Headers(scope=scope)
        if not is_ours(path):
            refused = None
            if not state.authenticator.required:
                refused = refusal_of_others(headers, state.settings.hosts)
            await (_told(refused) if refused else self._app)(scope, receive, send)
            return
        started = False

        async def protected(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(MutableHeaders(scope=message), path)
            await send(message)

        if (refused := refusal(headers, path, state.settings.hosts)) is not None:
            await _told(refused)(scope, receive, protected)
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


Refusal = tuple[HTTPStatus, str, str]
OTHER_HOST: Refusal = (
    HTTPStatus.MISDIRECTED_REQUEST,
    "host_not_allowed",
    "This host name is not served. ALLOWED_HOSTS names those that are.",
)
OTHER_ORIGIN: Refusal = (
    HTTPStatus.FORBIDDEN,
    "origin_not_allowed",
    "Pages of other web sites may not use this service.",
)


def refusal(headers: Headers, path: str, allowed: frozenset[str]) -> Refusal | None:
    """Return why a request for us is refused: status, code, and a sentence; or nothing."""
    host = headers.get("host", "")
    name = _host_name(host)
    if not (is_loopback(name) or name in allowed):
        return OTHER_HOST
    if path.startswith(("/api/", "/v1/")) and not _same_origin(headers, host, allowed):
        return OTHER_ORIGIN
    return None


def refusal_of_others(headers: Headers, allowed: frozenset[str]) -> Refusal | None:
    """Return why a request for the server's own routes is refused, or nothing.

    LangGraph Studio and the web apps that somebody runs on this machine are welcome there. The
    server speaks to itself by a name without a dot, which no web site has.
    """
    name = _host_name(headers.get("host", ""))
    if not (is_loopback(name) or name in allowed or name.isalnum()):
        return OTHER_HOST
    if (origin := headers.get("origin")) is None:
        return None
    scheme, _, sender = origin.partition("://")
    page = _host_name(sender)
    studio = scheme == "https" and (page == STUDIO or page.endswith(f".{STUDIO}"))
    local = scheme in {"http", "https"} and (is_loopback(page) or page in allowed)
    return None if studio or local else OTHER_ORIGIN


def is_loopback(name: str) -> bool:
    """Return whether a host name can only mean this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _told(refused: Refusal) -> ASGIApp:
    status, code, sentence = refused
    return error_response(status, code, sentence)


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
