import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.integration.cli.terminal import run

DEAD = "http://127.0.0.1:9"


@pytest.fixture
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@pytest.mark.parametrize(
    ("command", "way_out"),
    [
        pytest.param("serve", "chatbot serve --port 8123", id="our own server"),
        pytest.param("dev", "make run PORT=8123", id="the LangGraph server"),
    ],
)
def test_taken_port(tmp_path: Path, taken_port: str, command: str, way_out: str) -> None:
    result = run(tmp_path, command, "--port", taken_port)

    assert (result.code, result.out) == (2, "")
    assert f"Port {taken_port} on 127.0.0.1 is taken" in result.err
    assert way_out in result.err
    assert result.err.count("\n") == 1


def test_address_that_others_reach_needs_consent(tmp_path: Path) -> None:
    result = run(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - refused

    assert (result.code, result.out) == (2, "")
    assert "--insecure" in result.err


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        pytest.param(
            ["ask", "?"],
            {"PASSAGES": "99"},
            ["PASSAGES='99'", "the environment", "30"],
            id="value",
        ),
        pytest.param(
            ["ask", "?"],
            {"OPENAI_BASE_URL": "user:hidden@nowhere"},
            ["OPENAI_BASE_URL", "http://"],
            id="address, which is not repeated",
        ),
        pytest.param(
            ["ask", "?"],
            {"LANGSMITH_TRACING": "true"},
            ["LANGSMITH_API_KEY is missing"],
            id="traces without a key",
        ),
        pytest.param(["ask", ""], {}, ["no question"], id="no question"),
        pytest.param(
            ["serve", "--port", "0", "--workers", "2"],
            {"CHATBOT_DATA_DIR": ":memory:"},
            ["MONGODB_URI", "CHATBOT_DATA_DIR"],
            id="workers that share nothing",
        ),
        pytest.param(
            ["dev", "--port", "0"],
            {"CHATBOT_DATA_DIR": ":memory:"},
            ["CHATBOT_DATA_DIR", "chatbot serve"],
            id="LangGraph's server without a folder",
        ),
        pytest.param(["sessions", "delete"], {}, ["--all"], id="no session to delete"),
        pytest.param(
            ["sessions", "delete", "s", "--all"], {}, ["--all"], id="one session and all"
        ),
        pytest.param(["sessions", "list", "--before", "s"], {}, ["cursor"], id="no cursor"),
        pytest.param(["ask", "?", "--route", "both"], {}, ["general_chat"], id="unknown route"),
        pytest.param(
            ["chat", "--session", "a b"], {}, ["session id"], id="session of two words"
        ),
    ],
)
def test_misuse(
    tmp_path: Path, arguments: list[str], settings: Mapping[str, str], words: list[str]
) -> None:
    result = run(tmp_path, *arguments, settings=settings)

    assert (result.code, result.out) == (2, "")
    assert all(word in result.err for word in words)
    assert "Traceback" not in result.err
    assert "hidden" not in result.err


def test_wrong_value_is_named_with_the_file_it_stands_in(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LOG_LEVEL=LOUD\n", encoding="utf-8")
    result = run(tmp_path, "sessions", "list", cwd=tmp_path)

    assert result.code == 2
    assert all(
        word in result.err for word in ("LOG_LEVEL='LOUD'", str(tmp_path / ".env"), "DEBUG")
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--help"], id="of all"),
        pytest.param(["sessions", "--help"], id="of a group"),
    ],
)
def test_help_is_shown_without_loading_anything_heavy(
    tmp_path: Path, arguments: list[str]
) -> None:
    result = run(tmp_path, *arguments, settings={"PYTHONPROFILEIMPORTTIME": "1"})

    assert "Usage: chatbot" in result.out + result.err
    imported = {line.rpartition("|")[2].strip() for line in result.err.splitlines()}
    assert "serving.cli.app" in imported
    assert not imported & {
        "rich",
        "langgraph",
        "langchain_core",
        "uvicorn",
        "fastapi",
    }
