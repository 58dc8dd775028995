"""Which tools the settings bring."""

from pathlib import Path

import pytest

from chatbot.bootstrap import open_ports
from chatbot.errors import ConfigurationError
from chatbot.settings import Settings
from tests.servers.tools import ToolServer


def models_file(folder: Path, server: ToolServer, *, tools: str = "true") -> Path:
    file = folder / "models.toml"
    endpoint = f"model = 'm'\nbase_url = 'http://127.0.0.1:9/v1'\ntools = {tools}\n"
    file.write_text(f"[[endpoint]]\n{endpoint}\n{server.table}", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("able", "offered"),
    [
        pytest.param("true", ["current_time", "forecast"], id="a model that calls tools"),
        pytest.param("false", [], id="a model that calls none"),
    ],
)
async def test_tools_are_offered_to_models_that_call_them(
    tmp_path: Path, able: str, offered: list[str]
) -> None:
    with ToolServer() as server:
        settings = Settings(
            chatbot_data_dir=tmp_path,
            models_file=models_file(tmp_path, server, tools=able),
            tools="current_time",
        )
        async with open_ports(settings) as ports:
            toolbox = ports.tool_servers.toolbox if ports.tool_servers else ports.toolbox
            assert list(toolbox.schemas) == offered


async def test_a_tool_that_there_is_not_is_named(tmp_path: Path) -> None:
    with ToolServer() as server:
        file = models_file(tmp_path, server)
        settings = Settings(chatbot_data_dir=tmp_path, models_file=file, tools="clock")
        with pytest.raises(ConfigurationError, match="'clock'; there is only current_time"):
            async with open_ports(settings):
                pass
