"""Reads the MCP servers whose tools are offered; the TOML file of `MODELS_FILE` names them.

[mcp.weather]
url = "https://tools.example.com/mcp"    # streamable HTTP
headers = { Authorization = "Bearer ${WEATHER_KEY}" }

[mcp.files]
command = "uvx"                          # or a program that speaks MCP on stdio
args = ["mcp-server-files", "/srv/docs"]
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from chatbot.errors import ConfigurationError
from chatbot.settings import Url
from chatbot.validation import rule_of

VARIABLE = re.compile(r"\$\{(\w+)\}")


class McpServer(BaseModel):
    """One `[mcp.<name>]` table: an address, or a command. `${NAME}` stands for a variable."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Url | None = None
    headers: dict[str, str] = {}
    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_way_in(self) -> "McpServer":
        if (self.url is None) == (self.command is None):
            message = "needs either url or command"
            raise ValueError(message)
        return self

    def connection(self) -> dict[str, Any]:
        """Return what the MCP client takes."""
        if self.url is not None:
            headers = {name: _filled(value) for name, value in self.headers.items()}
            return {"transport": "streamable_http", "url": self.url, "headers": headers}
        env = {name: _filled(value) for name, value in self.env.items()}
        return {
            "transport": "stdio",
            "command": self.command,
            "args": self.args,
            # Beside the few variables that every program needs: no key of ours is its business.
            "env": env,
        }


def read_mcp_servers(path: Path) -> Mapping[str, McpServer]:
    """Return the MCP servers that the file names.

    Raises:
        ConfigurationError: The file cannot be read, or a table is wrong. Names both.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("mcp", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"MODELS_FILE={path} cannot be read: {error}"
        raise ConfigurationError(message) from None
    if not isinstance(tables, dict):
        message = f"{path}: MCP servers are written as [mcp.<name>]."
        raise ConfigurationError(message)
    servers = {}
    for name, table in tables.items():
        try:
            servers[name] = McpServer.model_validate(table)
        except ValidationError as error:
            detail = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in ("mcp", name, *detail["loc"]))
            message = f"{path}: {where}: {rule_of(detail)}"
            raise ConfigurationError(message) from None
    return servers


def _filled(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        if (found := os.environ.get(match[1])) is None:
            message = f"The variable {match[1]}, which an MCP server needs, is not set."
            raise ConfigurationError(message)
        return found

    return VARIABLE.sub(value, text)
