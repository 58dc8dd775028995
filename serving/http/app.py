"""Makes the FastAPI app: routes, their protection, and the chatbot behind them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from chatbot.logs import configure_levels
from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from graphs.stateless import Stateless
from serving import openai
from serving.auth import Authenticator
from serving.http import (
    chat,
    documents,
    feedback,
    health,
    images,
    knowledge,
    page,
    sessions,
    users,
)
from serving.http.errors import ErrorReply, add_error_handlers
from serving.http.limits import BodyLimit
from serving.http.protection import Protection
from serving.http.quotas import Quotas, own_quotas
from serving.http.running import RunningTurns
from serving.http.suggestions import SuggestedQuestions
from serving.mcp.http import PATH, McpEndpoint, open_endpoint

OpenBot = Callable[[Settings | None], AbstractAsyncContextManager[Chatbot]]
OpenQuotas = Callable[[Settings], AbstractAsyncContextManager[Quotas]]

DISTRIBUTION = "ragflow-chatbot"


def create_app(
    settings: Settings | None = None,
    *,
    open_bot: OpenBot = open_chatbot,
    open_quotas: OpenQuotas = own_quotas,
) -> FastAPI:
    """Return the app; nothing is read or opened before its lifespan begins.

    Without settings they are read from the environment and the `.env` files.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Whatever reads files runs in a thread: the loop may belong to a server that
        # refuses blocking calls.
        known = settings if settings is not None else await asyncio.to_thread(Settings.load)
        configure_levels(known)
        authenticator = Authenticator(known)
        await authenticator.refresh()
        app.state.authenticator = authenticator
        app.state.settings = known
        app.state.version = await asyncio.to_thread(_version)
        app.state.page = await asyncio.to_thread(page.load_page)
        async with (
            open_quotas(known) as quotas,
            open_bot(known) as bot,
            RunningTurns() as running,
            open_endpoint(bot, known, authenticator, quotas, app.state.version) as endpoint,
        ):
            app.state.quotas = quotas
            app.state.mcp = endpoint
            app.state.stateless = Stateless(bot.ports)
            app.state.bot = bot
            app.state.running = running
            app.state.suggestions = SuggestedQuestions()
            yield

    app = FastAPI(
        title="Chatbot",
        summary="Answers questions from a knowledge base, with citations.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={"default": {"model": ErrorReply, "description": "What went wrong."}},
    )
    app.add_middleware(BodyLimit)
    app.add_middleware(Protection)
    add_error_handlers(app)
    every = (chat, sessions, feedback, images, knowledge, documents, users, health, page)
    for routes in every:
        app.include_router(routes.router)
    app.include_router(sessions.search)
    app.include_router(openai.router)
    app.router.routes.append(Route(PATH, _Mcp(), include_in_schema=False))
    return app


class _Mcp:
    """Hands requests to the MCP endpoint that the lifespan opened."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        endpoint: McpEndpoint = scope["app"].state.mcp
        await endpoint(scope, receive, send)


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unreleased"
