import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from chatbot.domain import Turn
from chatbot.settings import Settings
from graphs.synchronous import open_chatbot_sync
from tests.integration.cli.terminal import SECONDS, Terminal, environment, run
from tests.servers.model import ModelServer, answer, refuse

LONG = [f"word{number} " for number in range(200)]
LEAVE = "\x04"
STOP = "\x03"
ARROW_UP = "\x1b[A"
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"


def kept(data_dir: Path) -> Sequence[Turn]:
    """Return what the history has of the default session."""
    with open_chatbot_sync(Settings(chatbot_data_dir=data_dir)) as bot:
        return bot.turns("default")


def test_question_in_a_pipe_gets_plain_text_and_sources(tmp_path: Path) -> None:
    result = run(tmp_path, "ask", "-", text="How many days of annual leave do I get?\n")

    assert (result.code, result.err) == (0, "")
    assert "[1]" in result.out.partition("\nSources:\n")[0]
    assert "[1] leave.md" in result.out.partition("\nSources:\n")[2]
    assert "\x1b" not in result.out


def test_json_answer_is_one_object(tmp_path: Path) -> None:
    result = run(tmp_path, "ask", "瓦尔登湖在哪里？", "--json", "--session", "s1")

    found = json.loads(result.out)
    assert result.code == 0
    assert "康科德" in found["answer"]
    assert found["citations"][0]["document"].startswith("瓦尔登湖")
    assert found["metadata"]["session_id"] == "s1"
    assert found["metadata"]["intent"] == "knowledge_base"
    assert found["usage"]["total_ms"] > 0
    assert "康科德" in result.out  # not escaped


def test_conversation_in_a_terminal(tmp_path: Path) -> None:
    script = [answer(LONG, delay=0.05), answer("**Second** answer.")]
    with ModelServer(script) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        with Terminal(tmp_path, "chat", "--route", "general_chat", settings=settings) as chat:
            chat.until("> ")
            chat.type("first question\n")
            chat.until("word3")
            chat.type(STOP)
            stopped = chat.until("\n> ")
            chat.type("another\\\nquestion\n")
            second = chat.until("answer.")
            chat.until("\n> ")
            chat.type("/sessions\n")
            sessions = chat.until("\n> ")
            chat.type("/nonsense\n")
            unknown = chat.until("\n> ")
            chat.type(LEAVE)
            code = chat.code()

    assert "what was said so far is kept" in stopped
    assert "Traceback" not in chat.raw
    assert "**" not in second.partition("Second")[2]
    assert "first question" in sessions
    assert "/help" in unknown
    assert code == 0
    assert model.seen[-1].question == "another\nquestion"
    assert model.abandoned == 1

    first, then = kept(tmp_path)
    assert (first.status, then.status) == ("stopped", "complete")
    assert first.answer.startswith("word0 word1 word2")
    assert "word199" not in first.answer


def test_lines_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    with ModelServer([answer("First."), answer("Second.")]) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        for keys, said in (("瓦尔登湖？\n", "First."), (ARROW_UP + "\n", "Second.")):
            with Terminal(
                tmp_path, "chat", "--route", "general_chat", settings=settings
            ) as chat:
                chat.until("> ")
                chat.type(keys)
                chat.until(said)
                chat.until("\n> ")
                chat.type(LEAVE)
                assert chat.code() == 0
        assert model.seen[-1].question == "瓦尔登湖？"

    assert (tmp_path / "input_history").stat().st_mode & 0o777 == 0o600
    assert len(kept(tmp_path)) == 2


def test_pasted_lines_are_one_question(tmp_path: Path) -> None:
    with ModelServer([answer("Seen.")]) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        with Terminal(tmp_path, "chat", "--route", "general_chat", settings=settings) as chat:
            chat.until("> ")
            chat.type(f"{PASTE_BEGINS}one\ntwo{PASTE_ENDS}\n")
            chat.until("Seen.")
            chat.until("\n> ")
            chat.type(LEAVE)
            assert chat.code() == 0
        assert model.seen[-1].question == "one\ntwo"


def test_conversation_in_a_pipe(tmp_path: Path) -> None:
    lines = "瓦尔登湖\\\n在哪里？\n/sources\n/why\\"
    result = run(tmp_path, "chat", "--session", "piped", text=lines)

    assert (result.code, result.err) == (0, "")
    assert result.out.count("康科德") >= 2  # in the answer and in its source
    assert "knowledge_base" in result.out  # the last line counts although it is not whole
    assert "\x1b" not in result.out
    assert "> " not in result.out


def test_failed_turn(tmp_path: Path) -> None:
    with ModelServer([refuse(401, "no such key")]) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        result = run(tmp_path, "ask", "Hello", "--json", settings=settings)

    assert result.code == 1
    assert json.loads(result.out)["error"]["code"] == "model_auth"
    assert len(result.err.splitlines()) == 1
    assert "key" in result.err
    assert "127.0.0.1" not in result.out + result.err
    assert "`chatbot doctor` says more." in result.err


def test_interrupted_answer_is_kept(tmp_path: Path) -> None:
    with ModelServer([answer(LONG, delay=0.05)]) as model:
        settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        process = subprocess.Popen(
            [sys.executable, "-m", "serving.cli", "ask", "Hello", "--route", "general_chat"],
            env=environment(tmp_path, settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert process.stdout is not None
        first = process.stdout.read(6)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)

    assert process.returncode == 130
    assert first == "word0 "
    assert "word199" not in out
    assert err == ""

    (turn,) = kept(tmp_path)
    assert turn.status == "stopped"
    assert turn.answer.startswith("word0 ")


def server_of(launcher: subprocess.Popen[str]) -> int:
    """Return the process that the launcher started."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text()
    return int(children.split()[0])


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        pytest.param(signal.SIGTERM, 0, id="asked to end"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="killed"),
    ],
)
def test_server_ends_with_its_launcher(
    tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-m", "serving.cli", "dev", "--port", "0"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert launcher.stdout is not None
    ready = launcher.stdout.readline()
    address = ready.removeprefix("The chatbot is at ").split()[0]
    server = server_of(launcher)
    body = {"question": "瓦尔登湖在哪里？", "session_id": "s1"}
    reply = httpx.post(f"{address}/api/chat", json=body, timeout=SECONDS)
    launcher.send_signal(ending)
    out, err = launcher.communicate(timeout=SECONDS)
    give_up = time.monotonic() + SECONDS
    while is_alive(server) and time.monotonic() < give_up:
        time.sleep(0.05)

    assert reply.status_code == httpx.codes.OK
    assert not is_alive(server)
    assert (launcher.returncode, out) == (code, "")
    assert "graphs.keeping: turn ended" in err
    assert "瓦尔登湖在哪里" not in err
    assert "langgraph_api" not in err
    assert (tmp_path / ".langgraph_api").is_dir()
    assert "langgraph_api" in (tmp_path / "server.log").read_text(encoding="utf-8")
