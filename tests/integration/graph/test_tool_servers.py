"""Answers while the servers of their tools are away, and after."""

from chatbot.tools.mcp import McpServer
from chatbot.tools.tool_servers import ToolServers
from chatbot.tools.toolbox import Toolbox
from tests.integration.graph.conftest import Bench
from tests.integration.models.streams import until
from tests.ports import Call, Said
from tests.servers.tools import ToolServer

CHAT = Said(call=Call("general_chat"))
HI = Said(["Hi."])


async def test_the_tools_of_a_server_come_when_it_does(bench: Bench) -> None:
    forecast = Said(call=Call("forecast", '{"city": "Concord"}'))
    with ToolServer() as server:
        server.pause()
        known = {"weather": McpServer(url=f"{server.url}/mcp")}
        async with ToolServers(known, Toolbox(), start_seconds=30, rest_seconds=0) as servers:
            bot = bench.bot_with(tool_servers=servers)
            bench.script(CHAT, HI)
            first = await bot.ask("Weather?", session_id="s")
            [entry] = first.metadata["degraded"]
            health = await bot.health()
            server.resume()
            servers.wake()
            await until(lambda: not servers.missing, seconds=30)
            bench.script(CHAT, forecast, Said(["Sunny."]))
            second = await bot.ask("And now?", session_id="s")
    assert (first.text, entry["part"]) == ("Hi.", "tools")
    assert "The tools of weather cannot be used: " in entry["reason"]
    assert health == {"tools": entry["reason"]}
    assert (second.text, second.metadata["degraded"]) == ("Sunny.", [])
    assert await bot.health() == {}
    router = ["knowledge_base", "general_chat"]
    assert bench.model.offered == [router, [], router, ["forecast"], ["forecast"]]
    assert bench.asked(4) == "Concord: 晴, 21 °C"


async def test_each_turn_asks_for_the_servers_that_are_away(bench: Bench) -> None:
    with ToolServer() as server:
        server.pause()
        known = {"weather": McpServer(url=f"{server.url}/mcp")}
        async with ToolServers(known, Toolbox(), start_seconds=30, rest_seconds=0) as servers:
            server.resume()
            bench.script(CHAT, HI)
            await bench.bot_with(tool_servers=servers).ask("Hi?")
            await until(lambda: not servers.missing, seconds=30)
