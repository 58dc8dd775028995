import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from chatbot.errors import ConfigurationError
from chatbot.models.tool_calls import ToolCall
from chatbot.tools.clock import current_time_tool
from chatbot.tools.mcp import read_mcp_servers
from chatbot.tools.tool_servers import ToolServers
from chatbot.tools.toolbox import Toolbox
from tests.integration.models.streams import until
from tests.servers.loopback import Loopback, Reply, Request
from tests.servers.tools import ToolServer

SERVER = Path(__file__).with_name("mcp_server.py")
COMMAND = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


def opened(folder: Path, text: str, **options: Any) -> ToolServers:
    servers = read_mcp_servers(written(folder, text))
    choices = {"start_seconds": 30, **options}
    return ToolServers(servers, Toolbox(tools=[current_time_tool()]), **choices)


async def test_the_tools_of_a_server_are_run(tmp_path: Path) -> None:
    async with opened(tmp_path, f"[mcp.weather]\n{COMMAND}") as servers:
        box = servers.toolbox
        assert (list(box.schemas), servers.missing) == (["current_time", "forecast"], {})
        done = await box.run(ToolCall(name="forecast", arguments={"city": "康科德"}))
        assert (done.text, done.failed) == ("康科德: 晴, 21 °C", False)
        refused = await box.run(ToolCall(name="forecast", arguments={"town": "x"}))
        assert refused.failed


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        pytest.param(401, "it answered with HTTP 401", id="a wrong key"),
        pytest.param(503, "it answered with HTTP 503", id="away for a moment"),
    ],
)
async def test_a_server_that_refuses_is_left_out_and_named_without_its_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, reason: str
) -> None:
    async def refuse(_: Request, reply: Reply) -> None:
        await reply.send(b"no", status=status)

    with Loopback(refuse) as server:
        text = f'[mcp.gone]\nurl = "{server.url}/mcp?key=hidden"\n'
        async with opened(tmp_path, text) as servers:
            assert list(servers.toolbox.schemas) == ["current_time"]
            assert servers.missing == {"gone": reason}
    assert "the tools of gone cannot be used" in caplog.text
    assert "hidden" not in caplog.text


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path, '[mcp.gone]\ncommand = "/no/such/program"\n') as servers:
        assert servers.missing == {"gone": "No such file or directory"}


async def test_a_server_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    with ToolServer() as server:
        server.pause()
        async with opened(tmp_path, server.table, rest_seconds=0) as servers:
            assert set(servers.missing) == {"weather"}
            server.resume()
            servers.wake()
            servers.wake()  # one attempt at a time
            await until(lambda: not servers.missing, seconds=30)
            assert list(servers.toolbox.schemas) == ["current_time", "forecast"]
    methods = [each.json()["method"] for each in server.requests if each.method == "POST"]
    assert methods.count("tools/list") == 1


async def test_a_call_to_a_server_that_is_gone_fails_in_plain_words(tmp_path: Path) -> None:
    with ToolServer() as server:
        async with opened(tmp_path, server.table) as servers:
            server.pause()
            call = ToolCall(name="forecast", arguments={"city": "x"})
            done = await servers.toolbox.run(call)
    assert (done.text, done.failed) == (
        "The tool failed: All connection attempts failed",
        True,
    )


@pytest.mark.parametrize(
    ("seconds", "attempts"),
    [pytest.param(60, 0, id="resting"), pytest.param(0, 1, id="rested")],
)
async def test_a_server_that_failed_has_a_rest(
    tmp_path: Path, seconds: float, attempts: int
) -> None:
    text = '[mcp.a]\nurl = "http://127.0.0.1:9/mcp"\n'
    async with opened(tmp_path, text, rest_seconds=seconds) as servers:
        servers.wake()
        names = [task.get_name() for task in asyncio.all_tasks()]
    assert names.count("tools of a") == attempts


async def test_a_server_that_hangs_delays_nobody_and_is_left_at_the_end(tmp_path: Path) -> None:
    asked = gone = 0

    async def hang(_: Request, reply: Reply) -> None:
        nonlocal asked, gone
        asked += 1
        await reply.closed_by_client()
        gone += 1

    with Loopback(hang) as server:
        text = f'[mcp.slow]\nurl = "{server.url}/mcp"\n'
        async with opened(tmp_path, text, start_seconds=0.1) as servers:
            assert servers.missing == {"slow": "it has not answered yet"}
            await until(lambda: asked > 0, seconds=20)
        await until(lambda: gone > 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("[mcp.a]\n", "either url or command", id="neither address nor command"),
        pytest.param('[mcp.a]\nurl = "ftp://x"\n', "http://", id="an address of another kind"),
        pytest.param('[mcp.a]\ncommand = "x"\nport = 1\n', "mcp.a.port", id="unknown key"),
        pytest.param("mcp = 3\n", "written as", id="no table"),
        pytest.param("[mcp", "cannot be read", id="no TOML"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read_mcp_servers(written(tmp_path, text))


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    text = '[mcp.a]\nurl = "http://127.0.0.1:9"\nheaders = {Authorization = "${NO_SUCH_KEY}"}\n'
    with pytest.raises(ConfigurationError, match="NO_SUCH_KEY"):
        opened(tmp_path, text)


async def test_without_servers_the_tools_are_our_own(tmp_path: Path) -> None:
    async with opened(tmp_path, "") as servers:
        servers.wake()
        assert list(servers.toolbox.schemas) == ["current_time"]


def test_a_server_is_told_no_key_of_ours(tmp_path: Path) -> None:
    os.environ["SECRET_OF_THE_TEST"] = "hunter2"
    try:
        text = f'[mcp.a]\n{COMMAND}env = {{ CITY = "康科德" }}\n'
        connection = read_mcp_servers(written(tmp_path, text))["a"].connection()
    finally:
        del os.environ["SECRET_OF_THE_TEST"]
    assert connection["env"] == {"CITY": "康科德"}
