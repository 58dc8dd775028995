"""An MCP server over the tools."""

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, TextContent, Tool

from chatbot.errors import ChatbotError
from serving.auth import Identity
from serving.mcp.tools import TOOLS, Toolkit

logger = logging.getLogger(__name__)

NAME = "chatbot"
INSTRUCTIONS = (
    "Answers questions from a company's documents. Use search_knowledge for passages to reason "
    "over, ask for a finished answer with citations."
)

AnyServer = Server[Any, Any]
Register = Callable[[], Callable[[Callable[..., Awaitable[Any]]], object]]


def mcp_server(
    toolkit: Toolkit, version: str, whose: Callable[[AnyServer], Identity]
) -> AnyServer:
    """Return the server; `whose` says who makes the request that it is answering."""
    server: AnyServer = Server(NAME, version, instructions=INSTRUCTIONS)

    async def list_tools() -> list[Tool]:
        return list(TOOLS)

    async def call_tool(name: str, arguments: dict[str, Any]) -> CallToolResult:
        if name not in {tool.name for tool in TOOLS}:
            return _failed(f"There is no tool {name!r}.")
        try:
            found = await toolkit.call(name, arguments, whose(server), str(uuid.uuid4()))
        except ChatbotError as error:
            return _failed(error.message)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("the tool %s failed", name)
            return _failed("Something went wrong on our side. The log has the details.")
        text = json.dumps(found, ensure_ascii=False, indent=1, default=str)
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structuredContent=json.loads(text)
        )

    # The decorators of the package have no types.
    cast("Register", server.list_tools)()(list_tools)
    cast("Register", server.call_tool)()(call_tool)
    return server


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], isError=True)
