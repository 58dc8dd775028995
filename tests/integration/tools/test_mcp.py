import json
import os
import sys
from pathlib import Path

import pytest

from chatbot.errors import ConfigurationError
from chatbot.models.tool_calls import ToolCall
from chatbot.tools.mcp import mcp_tools, read_mcp_servers
from chatbot.tools.toolbox import Toolbox

SERVER = Path(__file__).with_name("mcp_server.py")
COMMAND = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


async def test_the_tools_of_a_server_are_run(tmp_path: Path) -> None:
    servers = read_mcp_servers(written(tmp_path, f"[mcp.weather]\n{COMMAND}"))
    box = Toolbox(tools=await mcp_tools(servers))
    assert list(box.schemas) == ["forecast"]
    done = await box.run(ToolCall(name="forecast", arguments={"city": "康科德"}))
    assert (done.text, done.failed) == ("康科德: 晴, 21 °C", False)
    refused = await box.run(ToolCall(name="forecast", arguments={"town": "x"}))
    assert refused.failed


async def test_a_server_that_cannot_be_reached_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = f'[mcp.gone]\nurl = "http://127.0.0.1:9/mcp"\n[mcp.weather]\n{COMMAND}'
    tools = await mcp_tools(read_mcp_servers(written(tmp_path, text)))
    assert [tool.name for tool in tools] == ["forecast"]
    assert "gone offers no tools" in caplog.text


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


async def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    text = '[mcp.a]\nurl = "http://127.0.0.1:9"\nheaders = {Authorization = "${NO_SUCH_KEY}"}\n'
    with pytest.raises(ConfigurationError, match="NO_SUCH_KEY"):
        await mcp_tools(read_mcp_servers(written(tmp_path, text)))


async def test_without_servers_there_are_no_tools(tmp_path: Path) -> None:
    assert await mcp_tools(read_mcp_servers(written(tmp_path, ""))) == []


def test_a_server_is_told_no_key_of_ours(tmp_path: Path) -> None:
    os.environ["SECRET_OF_THE_TEST"] = "hunter2"
    try:
        text = f'[mcp.a]\n{COMMAND}env = {{ CITY = "康科德" }}\n'
        connection = read_mcp_servers(written(tmp_path, text))["a"].connection()
    finally:
        del os.environ["SECRET_OF_THE_TEST"]
    assert connection["env"] == {"CITY": "康科德"}
