"""MCP over HTTP at `/api/mcp`, for those who sign in as everywhere else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from chatbot.settings import Settings
from graphs import Chatbot
from serving.auth import Authenticator, Identity
from serving.http.errors import handled
from serving.http.quotas import Quotas
from serving.mcp.server import AnyServer, mcp_server
from serving.mcp.tools import Toolkit

PATH = "/api/mcp"
IDENTITY = "chatbot.identity"  # in the scope of a request


class McpEndpoint:
    """An ASGI app, for as long as the chatbot is open. Each request stands for itself.

    So it does not matter which worker gets the next one.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, who: Authenticator) -> None:
        self._manager = manager
        self._who = who

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive, send)
        async with handled(request, receive, send):
            scope[IDENTITY] = await self._who.authenticate(request.headers)
            await self._manager.handle_request(scope, receive, send)


@asynccontextmanager
async def open_endpoint(
    bot: Chatbot, settings: Settings, who: Authenticator, quotas: Quotas, version: str
) -> AsyncIterator[McpEndpoint]:
    """Open the endpoint, and end what runs in it at the end."""
    toolkit = Toolkit(
        bot=bot,
        admit=quotas.admit,
        passages=settings.passages,
    )
    manager = StreamableHTTPSessionManager(
        mcp_server(toolkit, version, _whose), json_response=True, stateless=True
    )
    async with manager.run():
        yield McpEndpoint(manager, who)


def _whose(server: AnyServer) -> Identity:
    request = cast("Request", server.request_context.request)
    identity: Identity = request.scope[IDENTITY]
    return identity
