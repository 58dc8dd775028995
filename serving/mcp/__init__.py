"""The bot as an MCP server: on stdio with `chatbot mcp`, and over HTTP at `/api/mcp`."""

from serving.mcp.server import mcp_server

__all__ = ["mcp_server"]
