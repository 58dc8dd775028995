"""`chatbot mcp`: the bot as an MCP server on standard input and output."""

import asyncio
from collections.abc import Callable
from importlib.metadata import version

from mcp.server.stdio import stdio_server

from chatbot.settings import Settings
from serving.auth import NOBODY, Identity
from serving.mcp import mcp_server
from serving.mcp.tools import Toolkit
from serving.process import open_served


def serve_on_stdio(settings: Settings) -> None:
    """Serve until standard input ends. Whoever starts it owns the place."""
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    async with open_served(settings) as bot, stdio_server() as (read, write):
        toolkit = Toolkit(
            bot=bot,
            admit=_admit,
            passages=settings.passages,
        )
        server = mcp_server(toolkit, version("ragflow-chatbot"), lambda _: NOBODY)
        await server.run(read, write, server.create_initialization_options())


async def _admit(_: Identity) -> Callable[[], None]:
    """Admit every turn: those of one program are not counted."""
    return lambda: None
