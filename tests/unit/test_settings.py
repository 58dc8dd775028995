import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from chatbot.errors import ConfigurationError
from chatbot.settings import PROJECT, Settings


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Start without settings and leave the process environment as it was."""
    before = dict(os.environ)
    for name in [*Settings.model_fields]:
        os.environ.pop(name.upper(), None)
    yield
    os.environ.clear()
    os.environ.update(before)


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def test_the_environment_goes_before_the_local_file_before_the_file(tmp_path: Path) -> None:
    write(tmp_path, ".env", "PASSAGES=1\nHISTORY_TURNS=1\nMONGODB_DB=one\n")
    write(tmp_path, ".env.local", "HISTORY_TURNS=2\nMONGODB_DB=two\n")
    os.environ["MONGODB_DB"] = "three"
    settings = Settings.load(tmp_path)
    assert (settings.passages, settings.history_turns, settings.mongodb_db) == (1, 2, "three")
    assert settings.source("passages") == str(tmp_path / ".env")
    assert settings.source("history_turns") == str(tmp_path / ".env.local")
    assert settings.source("mongodb_db") == "the environment"
    assert settings.source("session_ttl_days") == "default"


def test_an_empty_value_counts_as_unset(tmp_path: Path) -> None:
    write(tmp_path, ".env.local", "MONGODB_URI=mongodb://x\n")
    os.environ["MONGODB_URI"] = ""
    assert Settings.load(tmp_path).mongodb_uri is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("HISTORY_TURNS=many", "HISTORY_TURNS='many'", id="not a number"),
        pytest.param("SESSION_TTL_DAYS=0", "greater than 0", id="too small"),
        pytest.param("ROUTE_DEFAULT=guess", "'knowledge_base' or 'general_chat'", id="no such"),
        pytest.param(
            "RAGFLOW_BASE_URL=ragflow:9380", "http://", id="an address without scheme"
        ),
        pytest.param(
            "RAGFLOW_BASE_URL=http://user:hidden@ragflow:9380", "a user", id="a user of RAGFlow"
        ),
        pytest.param("MONGODB_URI=mongo:27017", "mongodb://", id="a host alone"),
        pytest.param("MONGODB_DB=a/b", "MONGODB_DB", id="a forbidden character"),
        pytest.param("DEFAULT_SESSION_ID='a b'", "white space", id="not an id"),
        pytest.param("LOG_LEVEL=loud", "LOG_LEVEL", id="no such level"),
    ],
)
def test_a_wrong_value_names_variable_rule_and_source(
    tmp_path: Path, line: str, told: str
) -> None:
    write(tmp_path, ".env.local", line)
    with pytest.raises(ConfigurationError) as raised:
        Settings.load(tmp_path)
    assert told in raised.value.message
    assert line.partition("=")[0] in raised.value.message
    assert str(tmp_path / ".env.local") in raised.value.message


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    write(tmp_path, ".env.local", "RAGFLOW_BASE_URL=ftp://user:hunter2@host\nPASSAGES=0")
    with pytest.raises(ConfigurationError) as raised:
        Settings.load(tmp_path)
    assert "hunter2" not in raised.value.message
    write(tmp_path, ".env.local", "OPENAI_API_KEY=hunter2")
    os.environ.pop("RAGFLOW_BASE_URL")
    os.environ.pop("PASSAGES")
    assert "hunter2" not in repr(Settings.load(tmp_path))


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        Settings.load(tmp_path)


def test_values_are_taken_as_they_stand(tmp_path: Path) -> None:
    write(tmp_path, ".env", "OPENAI_API_KEY='a$b{c}'\n")
    key = Settings.load(tmp_path).openai_api_key
    assert key is not None
    assert key.get_secret_value() == "a$b{c}"


def test_relative_paths_stand_below_the_folder_of_the_settings(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path)
    assert settings.path(Path(".chatbot")) == tmp_path.resolve() / ".chatbot"
    assert settings.path(tmp_path) == tmp_path.resolve()
    assert settings.data_dir == tmp_path.resolve() / ".chatbot"


def test_the_committed_file_holds_the_defaults() -> None:
    text = (PROJECT / ".env").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines
    for line in lines:
        name, _, value = line.partition("=")
        default = Settings.model_fields[name.lower()].default
        assert str(default).lower() == value.lower(), name


def test_every_setting_stands_in_the_committed_file() -> None:
    text = (PROJECT / ".env").read_text(encoding="utf-8")
    named = set(re.findall(r"^(?:# )?([A-Z_]+)=", text, re.MULTILINE))
    assert {field.upper() for field in Settings.model_fields} <= named


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_every_setting_is_in_the_tables(readme: str) -> None:
    text = (PROJECT / readme).read_text(encoding="utf-8")
    patterns = re.findall(r"`([A-Z_]+\*?|\*[A-Z_]+)`", text)
    for field in Settings.model_fields:
        assert any(fnmatchcase(field.upper(), pattern) for pattern in patterns), field
