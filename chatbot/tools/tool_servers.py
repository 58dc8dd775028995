"""The tools of MCP servers, as far as these can be reached."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from langchain_core.tools import BaseTool

from chatbot.tasks import end
from chatbot.tools.mcp import McpServer
from chatbot.tools.toolbox import Toolbox, first_of

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
START_SECONDS = 10.0  # that a start waits for the servers at most
REST_SECONDS = 10.0
CLOSE_SECONDS = 3.0  # for the program of a server to end by itself
NOT_YET = "it has not answered yet"


class ToolServers:
    """The toolbox with the tools of the servers that could be reached so far.

    A server that is away is asked again when somebody wants tools, in the background, by one
    attempt at a time and after a rest. Each call of a tool opens a session of its own, so none
    is held open between turns.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        toolbox: Toolbox,
        *,
        start_seconds: float = START_SECONDS,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        """Read how to connect.

        Raises:
            ConfigurationError: A variable that a server needs is not set.
        """
        self._servers = [
            _Server(name=name, connection=server.connection())
            for name, server in servers.items()
        ]
        self._own = self._toolbox = toolbox
        self._start_seconds = start_seconds
        self._rest_seconds = rest_seconds

    async def __aenter__(self) -> Self:
        """Connect to the servers; one that is slow goes on connecting in the background."""
        if self._servers:
            # The MCP library is slow to import.
            await asyncio.to_thread(import_module, "langchain_mcp_adapters.tools")
            self.wake()
            tasks = [server.task for server in self._servers if server.task]
            await asyncio.wait(tasks, timeout=self._start_seconds)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the attempts that are under way."""
        tasks = [server.task for server in self._servers if server.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        await end(*tasks)

    @property
    def toolbox(self) -> Toolbox:
        """All tools that there are now."""
        return self._toolbox

    @property
    def offered(self) -> Mapping[str, Sequence[str]]:
        """The names of the tools of each server that could be reached."""
        return {
            each.name: [tool.name for tool in each.tools]
            for each in self._servers
            if each.tools is not None
        }

    @property
    def missing(self) -> Mapping[str, str]:
        """Why the tools of a server cannot be offered, by the name of the server."""
        return {each.name: each.problem for each in self._servers if each.tools is None}

    def wake(self) -> None:
        """Begin to ask the servers that are away and have rested."""
        now = asyncio.get_running_loop().time()
        for server in self._servers:
            idle = server.task is None or server.task.done()
            if server.tools is None and idle and now >= server.rests_until:
                name = f"tools of {server.name}"
                server.task = asyncio.create_task(self._connect(server), name=name)

    async def _connect(self, server: "_Server") -> None:
        load = import_module("langchain_mcp_adapters.tools").load_mcp_tools
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                tools: Sequence[BaseTool] = await load(
                    None, connection=server.connection, server_name=server.name
                )
            Toolbox(tools=tools)  # what cannot be described to a model is of no use
        except Exception as error:  # noqa: BLE001 - whatever a foreign program does wrong
            server.problem = _words(error)
            server.rests_until = asyncio.get_running_loop().time() + self._rest_seconds
            logger.warning("the tools of %s cannot be used: %s", server.name, server.problem)
            return
        server.tools = tools
        found = [tool for each in self._servers for tool in each.tools or ()]
        self._toolbox = self._own.adding(*found)
        logger.info("%s offers %d tools", server.name, len(tools))


@dataclass(kw_only=True, slots=True)
class _Server:
    name: str
    connection: dict[str, Any]
    tools: Sequence[BaseTool] | None = None
    problem: str = NOT_YET
    rests_until: float = 0
    task: asyncio.Task[None] | None = None


def _words(error: BaseException) -> str:
    """Return what went wrong without its own text, which may hold an address with a key."""
    error = first_of(error)
    if isinstance(error, TimeoutError):
        return f"it did not answer within {CONNECT_SECONDS:g} seconds"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return f"it answered with HTTP {status}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"the connection failed ({type(error).__name__})"
