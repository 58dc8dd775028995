"""Asks each MCP server for its tools."""

import asyncio

from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note

PART = "tools"
SECONDS = 4.0  # for a server to answer


async def examine_tools(settings: Settings, note: Note) -> None:
    """Connect to the servers that `MODELS_FILE` names, as a start does."""
    from chatbot.tools.mcp import read_mcp_servers  # noqa: PLC0415 - heavy, rarely needed
    from chatbot.tools.tool_servers import ToolServers  # noqa: PLC0415 - as above
    from chatbot.tools.toolbox import Toolbox  # noqa: PLC0415 - as above

    if settings.models_file is None:
        return
    servers = await asyncio.to_thread(read_mcp_servers, settings.path(settings.models_file))
    async with ToolServers(servers, Toolbox(), start_seconds=SECONDS) as opened:
        for name in servers:
            if reason := opened.missing.get(name):
                advice = f"Correct [mcp.{name}] in MODELS_FILE, or start the server."
                detail = f"{name}: {reason}. Answers go on without its tools."
                note(Finding(PART, "fail", detail, advice))
            else:
                offered = ", ".join(opened.offered[name]) or "no tools"
                note(Finding(PART, "ok", f"{name} offers {offered}."))
