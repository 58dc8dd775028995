"""Tells the date and the time."""

import asyncio
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.tools import BaseTool, StructuredTool, ToolException


def current_time_tool(zone: str = "") -> BaseTool:
    """Return a tool that tells the time in `zone`, an IANA name, else in UTC."""

    async def current_time(timezone: str = zone) -> str:
        """Tell the current date, weekday and time.

        Args:
            timezone: An IANA time zone such as Asia/Shanghai. Leave it out for the user's.
        """
        try:
            # Zones are files: they are read in a thread.
            place = await asyncio.to_thread(ZoneInfo, timezone) if timezone else UTC
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"There is no time zone {timezone!r}. Use a name such as Asia/Shanghai."
            raise ToolException(message) from None
        now = datetime.now(place)
        return now.strftime(f"%A, %Y-%m-%d %H:%M:%S (UTC%z, {timezone or 'UTC'})")

    return StructuredTool.from_function(
        coroutine=current_time, name="current_time", parse_docstring=True
    )
