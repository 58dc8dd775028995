"""An MCP server over HTTP with one tool: it says what the weather is."""

from http import HTTPStatus
from typing import Any

from tests.servers.loopback import Loopback, Reply, Request

FORECAST = {
    "name": "forecast",
    "description": "Tell the weather of a city.",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


class ToolServer(Loopback):
    """Speaks as much of MCP as a client needs. `pause` and `resume` take it away and back."""

    def __init__(self) -> None:
        super().__init__(self._handle)

    @property
    def table(self) -> str:
        """What the TOML file holds of it."""
        return f'[mcp.weather]\nurl = "{self.url}/mcp"\n'

    async def _handle(self, request: Request, reply: Reply) -> None:
        if request.method != "POST":
            await reply.send(b"", status=HTTPStatus.METHOD_NOT_ALLOWED)
            return
        message = request.json()
        if "id" not in message:
            await reply.send(b"", status=HTTPStatus.ACCEPTED)
            return
        result = self._result(message["method"], message.get("params") or {})
        await reply.json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _result(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return {
                "protocolVersion": given["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "weather", "version": "1"},
            }
        if method == "tools/list":
            return {"tools": [FORECAST]}
        city = given["arguments"]["city"]
        return {"content": [{"type": "text", "text": f"{city}: 晴, 21 °C"}]}
