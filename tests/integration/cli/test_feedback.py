"""`chatbot feedback` and `chatbot why`: what operators look at."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console

from chatbot.domain import Session, Turn
from chatbot.errors import InputError
from chatbot.settings import Settings
from graphs.reviews import Explanation
from graphs.synchronous import SyncChatbot, open_chatbot_sync
from serving.cli.feedback import list_feedback
from serving.cli.sessions import explain_turn
from serving.cli.why import explanation
from tests.integration.history.stores import START

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(chatbot_data_dir=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bot(settings: Settings) -> Iterator[SyncChatbot]:
    with open_chatbot_sync(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def rated(bot: SyncChatbot) -> dict[str, str]:
    """Ask and rate for three users, and return the ids of their turns."""
    ids = {}
    for user, thumb, comment in (
        ("ann", "down", "没有用"),
        ("bob", "up", None),
        ("cyd", "down", "no\x1b[31m use"),
    ):
        answer = bot.ask(f"Hello from {user}", session_id=f"of-{user}", user_id=user)
        ids[user] = answer.metadata["turn_id"]
        bot.rate(f"of-{user}", ids[user], thumb, comment, user_id=user)  # type: ignore[arg-type]
    return ids


def listed(settings: Settings, output: Output, **choices: object) -> tuple[str, str]:
    """Return what the command prints, and what it says beside that."""
    output.readouterr()
    usual = {"thumb": "down", "days": None, "limit": 50, "before": None, "as_json": False}
    list_feedback(settings, **{**usual, **choices})  # type: ignore[arg-type]
    said = output.readouterr()
    return said.out, said.err


def test_bad_answers_are_listed_latest_first(
    settings: Settings, rated: dict[str, str], capsys: Output
) -> None:
    out, err = listed(settings, capsys)
    assert out.index("cyd") < out.index("ann")
    assert "bob" not in out
    for word in ("Hello from ann", "没有用", rated["ann"], "of-cyd"):
        assert word in out
    assert "\x1b[31m" not in out  # a comment does not steer the terminal
    assert err == ""


def test_pages_and_json(settings: Settings, rated: dict[str, str], capsys: Output) -> None:
    out, _ = listed(settings, capsys, thumb=None, as_json=True)
    everything = json.loads(out)
    assert [each["user_id"] for each in everything] == ["cyd", "bob", "ann"]
    assert [each["thumb"] for each in everything] == ["down", "up", "down"]
    assert everything[0]["turn_id"] == rated["cyd"]
    assert everything[1]["comment"] is None
    _, err = listed(settings, capsys, thumb=None, limit=2)
    cursor = err.split("--before ")[1].strip()
    assert cursor == everything[1]["cursor"]
    out, _ = listed(settings, capsys, thumb=None, limit=2, before=cursor, as_json=True)
    assert [each["user_id"] for each in json.loads(out)] == ["ann"]
    assert listed(settings, capsys, days=0)[1] == "There is no such feedback yet.\n"
    with pytest.raises(InputError, match="cursor"):
        listed(settings, capsys, before="x")


def test_why_finds_a_turn_without_its_session(
    settings: Settings, rated: dict[str, str], capsys: Output
) -> None:
    explain_turn(settings, None, rated["ann"], as_json=True, user="ann")
    found = json.loads(capsys.readouterr().out)
    assert (found["session_id"], found["id"]) == ("of-ann", rated["ann"])
    with pytest.raises(InputError, match="no such turn"):
        explain_turn(settings, None, rated["ann"], as_json=True, user="bob")


RECORD: dict[str, Any] = {
    "intent": "knowledge_base",
    "reason": "the model called knowledge_base",
    "query": "年假有几天？",
    "assistants": ["员工手册"],
    "passages": [
        {
            "id": "1",
            "text": "25 days.",
            "document": "leave.md",
            "location": "p. 2",
            "score": 0.91,
        },
        {"id": "2", "text": "Other.", "document": "other.md", "score": 0.2},
        {"id": "3", "text": "25 days.", "document": "copy.md", "score": 0.1},
        {"id": "4", "text": "25 days.", "document": "third.md", "score": 0.1},
    ],
    "citations": [{"text": "25 days.", "number": 1}, {"text": "25 days.", "number": 4}],
    "replaces": "the-first",
    "choices": {
        "language": "Chinese",
        "instructions": "Be\nbrief.",
        "response_schema": {"type": "object"},
    },
    "finish_reason": "length",
    "cut": {"turns": 3, "passages": 1},
    "degraded": [{"part": "history", "reason": "MongoDB is away."}],
    "tools": [{"name": "weather", "arguments": {"city": "x"}, "failed": True}],
    "model": "qwen-plus",
    "endpoint": "second",
    "attempts": [{"endpoint": "first", "kind": "rate_limit"}],
    "usage": {"input_tokens": 900, "output_tokens": 20, "estimated": True},
    "route_early": "used",
    "prefetch": "used",
    "head_start": "unused",
    "timings": {"route": 300.0, "retrieve": 150.0, "answer": 600.0},
    "first_token_ms": 650.0,
    "total_ms": 1050.0,
    "trace_id": "a-trace",
}


def told(record: dict[str, Any], trace_url: str | None = None) -> list[str]:
    """Return the lines that tell how a turn with this record came about."""
    turn = Turn(id="t", question="几天？", answer="25 [1]", started_at=START, record=record)
    found = Explanation(session=Session(session_id="s"), turn=turn, trace_url=trace_url)
    console = Console(file=io.StringIO(), width=120)
    with console.capture() as capture:
        console.print(explanation(found))
    return [" ".join(line.split()) for line in capture.get().splitlines()]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param({"outcome": "empty"}, "found nothing", id="nothing"),
        pytest.param({"outcome": "unavailable"}, "could not be searched", id="away"),
        pytest.param({"outcome": "forbidden"}, "may not be searched", id="forbidden"),
        pytest.param(
            {"outcome": "found", "left_out": ["passages"]}, "too large to be kept", id="large"
        ),
        pytest.param({"outcome": "empty", "intent": "general_chat"}, "", id="not looked up"),
    ],
)
def test_why_tells_why_there_are_no_passages(record: dict[str, Any], expected: str) -> None:
    lines = told({"intent": "knowledge_base", **record})
    found = [line for line in lines if line.startswith("found")]
    assert expected in (found[0] if found else "")
    assert bool(found) == bool(expected)


def test_why_tells_all_that_is_known() -> None:
    lines = told(RECORD, "https://smith/r/t")
    for line in (
        "in place of turn the-first",
        "question 几天？",
        "asked for language: Chinese",
        "asked for instructions: Be brief.",
        'asked for response schema: {"type": "object"}',
        "ended with length",
        "read early the router's call, whose end was not waited for",
        "route knowledge_base: the model called knowledge_base",
        "searched for 年假有几天？",
        "assistants 员工手册",
        "left out 3 earlier turns, 1 passages",
        "degraded history: MongoDB is away.",
        "tool weather {'city': 'x'} (failed)",
        "model qwen-plus at second",
        "tried before first: rate_limit",
        "tokens 900 read, 20 written (estimated)",
        "begun early searches (used), the answer (unused)",
        "time first token after 650 ms, 1050 ms in all",
        "trace https://smith/r/t",
        f"route 300 {'█' * 15}",
        f"answer 600 {'█' * 30}",
        "[1] 0.91 leave.md · p. 2 25 days.",
        "0.20 other.md Other.",
        "0.10 copy.md 25 days.",
        "[4] 0.10 third.md 25 days.",
    ):
        assert line in lines
