"""Tells the date and the time."""

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException

TIMEZONE = "timezone"  # under which a tool finds the user's zone in its configuration


def current_time_tool() -> BaseTool:
    """Return a tool that tells the time, in the user's zone unless asked for another."""

    async def current_time(config: RunnableConfig, timezone: str = "") -> str:
        """Tell the current date, weekday and time.

        Args:
            config: Holds the user's zone.
            timezone: An IANA time zone such as Asia/Shanghai. Leave it out for the user's.
        """
        found = None
        if timezone and (found := await _now(timezone)) is None:
            message = f"There is no time zone {timezone!r}. Use a name such as Asia/Shanghai."
            raise ToolException(message)
        zone = timezone or config.get("configurable", {}).get(TIMEZONE) or ""
        now = found or await now_in(zone)
        return now.strftime(f"%A, %Y-%m-%d %H:%M:%S (UTC%z, {now.tzinfo})")

    return StructuredTool.from_function(
        coroutine=current_time, name="current_time", parse_docstring=True
    )


async def now_in(zone: str) -> datetime:
    """Return the time in the zone; in that of this machine where there is no such zone."""
    return await _now(zone) or datetime.now().astimezone()


async def _now(zone: str) -> datetime | None:
    if not zone:
        return None
    try:
        # Zones are files: they are read in a thread.
        return datetime.now(await asyncio.to_thread(ZoneInfo, zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
