"""An MCP server with one tool, on stdio."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("weather")


@server.tool()
def forecast(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: 晴, 21 °C"


if __name__ == "__main__":
    server.run()
