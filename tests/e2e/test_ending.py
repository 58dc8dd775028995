"""A server that is told to end: what is being answered ends first, up to a limit."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from serving.cli.http_server import GRACE_SECONDS
from tests.servers.chatbot import chatbot_server, running_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call
from tests.servers.mongod import Mongod

pytestmark = pytest.mark.timeout(300)

PACE_SECONDS = 0.05
SHORT = 40
ENDLESS = int(3 * GRACE_SECONDS / PACE_SECONDS)
ONE: list[str] = []
TWO = ["--workers", "2"]


def think(request: ChatRequest) -> Script:
    if request.tools:
        return call("general_chat")
    words = ENDLESS if "endless" in request.question else SHORT
    return answer([f"word{number} " for number in range(words)], delay=PACE_SECONDS)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(think) as server:
        yield server


@pytest.fixture
def settings(mongod: Mongod, model: ModelServer, tmp_path: Path) -> dict[str, str]:
    return {
        "MONGODB_URI": mongod.uri,
        "MONGODB_DB": f"ending-{tmp_path.parent.name}-{tmp_path.name}"[-60:],
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": model.base_url,
        "LLM_MODEL": "scripted",
    }


def begin(stack: ExitStack, url: str, question: str, session_id: str) -> Iterator[str]:
    """Ask, and return the lines of the stream once the answer is on its way."""
    body = {"question": question, "session_id": session_id, "on_disconnect": "continue"}
    # A client of its own, so a connection of its own: any worker may take it.
    http = stack.enter_context(httpx.Client(base_url=url, timeout=60))
    response = stack.enter_context(http.stream("POST", "/api/chat", json=body))
    lines = response.iter_lines()
    next(line for line in lines if "word2" in line)
    return lines


def last_event(lines: Iterator[str]) -> dict[str, Any]:
    *_, last = (line for line in lines if line.startswith("data: "))
    event: dict[str, Any] = json.loads(last[6:])
    return event


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        pytest.param(ONE, signal.SIGTERM, id="one process"),
        pytest.param(TWO, signal.SIGTERM, id="two workers"),
        pytest.param(TWO, signal.SIGINT, id="two workers, Ctrl-C"),
    ],
)
def test_running_answers_end_first(
    workers: list[str], number: signal.Signals, tmp_path: Path, settings: dict[str, str]
) -> None:
    with (
        chatbot_server(tmp_path, "serve", *workers, settings=settings) as server,
        ExitStack() as stack,
    ):
        streams = [begin(stack, server.url, "short", f"session-{n}") for n in range(4)]
        children = server.children()
        server.end(number)
        for lines in streams:
            event = last_event(lines)
            assert event["type"] == "end"
            assert event["data"]["finish_reason"] == "stop"
            assert event["data"]["full_answer"].split()[-1] == f"word{SHORT - 1}"
        assert server.exit_code() == 0
        give_up = (
            time.monotonic() + 20
        )  # what multiprocessing itself started ends a little later
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            assert time.monotonic() < give_up
            time.sleep(0.1)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health/live")


@pytest.mark.parametrize("workers", [ONE, TWO], ids=["one process", "two workers"])
def test_what_does_not_end_is_stopped_and_kept(
    workers: list[str], tmp_path: Path, settings: dict[str, str]
) -> None:
    with (
        chatbot_server(tmp_path, "serve", *workers, settings=settings) as server,
        ExitStack() as stack,
    ):
        begin(stack, server.url, "endless, watched", "watched")
        with ExitStack() as gone:
            begin(gone, server.url, "endless, alone", "alone")
        server.end(signal.SIGTERM)
        assert server.exit_code() == 0
    with running_chatbot(tmp_path, "serve", settings=settings) as url:
        for session_id in ("watched", "alone"):
            (turn,) = httpx.get(f"{url}/api/sessions/{session_id}").json()["turns"]
            assert turn["answer"].startswith("word0 word1 word2")
            assert turn["status"] == "stopped"
