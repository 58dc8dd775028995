import json
from pathlib import Path

from tests.integration.cli.terminal import Terminal, run
from tests.servers.model import ModelServer, answer

LONG = [f"word{number} " for number in range(200)]
LEAVE = "\x04"
STOP = "\x03"


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

    shown = run(tmp_path, "sessions", "show", "default", "--json")
    first, then = json.loads(shown.out)
    assert (first["status"], then["status"]) == ("stopped", "complete")
    assert first["answer"].startswith("word0 word1 word2")
    assert "word199" not in first["answer"]


def test_conversation_in_a_pipe(tmp_path: Path) -> None:
    lines = "瓦尔登湖在哪里？\n/sources\n/quit\nnever asked\n"
    result = run(tmp_path, "chat", "--session", "piped", text=lines)

    assert (result.code, result.err) == (0, "")
    assert result.out.count("康科德") >= 2  # in the answer and in its source
    assert "\x1b" not in result.out
    assert "> " not in result.out
