"""No secret that is set anywhere stands in a log or leaves with a trace."""

import logging
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.logs import log_to_file
from chatbot.redaction import redaction
from chatbot.settings import Settings
from tests.unit.test_logs import logging_as_before  # noqa: F401 - a fixture

FIELDS = Settings.model_fields
SECRET_FIELDS = [name for name in FIELDS if "SecretStr" in str(FIELDS[name].annotation)]
# That of RAGFlow takes no login.
ADDRESSES = [name for name in FIELDS if name.endswith("_url") and "ragflow" not in name]
MODELS_FILE = """
[[endpoint]]
model = "first"
api_key = "key-in-the-file, another-key-in-the-file"
base_url = "https://ann:password-of-the-endpoint@models.example.com/v1?api-key=key-in-the-query"

[[endpoint]]
model = "second"
api_key_variable = "WHERE_IT_IS"

[mcp.weather]
url = "https://tools.example.com/mcp?token=token-of-the-tools"
headers = { Authorization = "Token ${OF_THE_WEATHER}", X-Api-Key = "plain-header-of-tools" }

[mcp.files]
command = "files"
args = ["--api-key", "key-among-arguments", "/srv/documents", "--token=token-among-them"]
env = { ANYTHING = "value-of-a-variable" }
"""
OF_THE_FILE = (
    "key-in-the-file",
    "another-key-in-the-file",
    "password-of-the-endpoint",
    b64encode(b"ann:password-of-the-endpoint").decode(),
    "key-in-the-query",
    "key-in-the-environment",
    "token-of-the-tools",
    "header-in-the-environment",
    "plain-header-of-tools",
    "key-among-arguments",
    "token-among-them",
    "value-of-a-variable",
)
OF_THE_SETTINGS = [f"secret-of-{name}" for name in (*SECRET_FIELDS, *ADDRESSES)]


@pytest.fixture(name="settings")
def every_secret_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    file = tmp_path / "models.toml"
    file.write_text(MODELS_FILE, encoding="utf-8")
    monkeypatch.setenv("WHERE_IT_IS", "key-in-the-environment")
    monkeypatch.setenv("OF_THE_WEATHER", "header-in-the-environment")
    monkeypatch.setenv("ELSEWHERE_API_KEY", "key-of-something-else")
    chosen: dict[str, Any] = {name: SecretStr(f"secret-of-{name}") for name in SECRET_FIELDS}
    chosen |= {name: f"http://ann:secret-of-{name}@host" for name in ADDRESSES}
    uri = SecretStr("mongodb://ann:secret-of-mongodb_uri@host")
    return Settings(**{**chosen, "mongodb_uri": uri, "models_file": file})


@pytest.mark.parametrize("secret", [*OF_THE_FILE, *OF_THE_SETTINGS, "key-of-something-else"])
def test_every_secret_is_removed(settings: Settings, tmp_path: Path, secret: str) -> None:
    path = tmp_path / "chatbot.log"
    log_to_file(settings, path)
    logging.getLogger("chatbot").warning("它说：%s!", secret, extra={"given": [secret]})
    logging.getLogger().handlers[0].close()

    assert secret not in path.read_text(encoding="utf-8")
    assert "它说：[secret]!" in path.read_text(encoding="utf-8")
    assert redaction(settings)(f"它说：{secret}!") == "它说：[secret]!"


def test_what_is_no_secret_stays(settings: Settings) -> None:
    line = "second at models.example.com reads /srv/documents"
    assert redaction(settings)(line) == line


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no file"),
        pytest.param("[[endpoint", id="no TOML"),
        pytest.param("endpoint = 1\nmcp = 'x'", id="other types"),
        pytest.param(
            "[[endpoint]]\nbase_url = 1\n[mcp]\na = 1\n[mcp.b]\nargs = 1\nenv = 2", id="wrong"
        ),
    ],
)
def test_a_file_that_is_wrong_hinders_no_log(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "models.toml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    settings = Settings(models_file=file, openai_api_key=SecretStr("key-in-the-settings"))
    assert redaction(settings)("key-in-the-settings 1") == "[secret] 1"
