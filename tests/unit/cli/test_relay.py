import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from serving.cli.relay import Relay

KEY = "sk-0123456789abcdef"


def record(event: str, logger: str, level: str = "info", **fields: Any) -> str:
    known = {"event": event, "logger": logger, "level": level, "timestamp": "T"}
    server = {"thread_name": "MainThread", "langgraph_api_version": "0", "api_variant": "x"}
    return json.dumps({**known, **server, **fields}, ensure_ascii=False) + "\n"


def relay(tmp_path: Path, **fields: Any) -> Relay:
    settings = Settings(chatbot_data_dir=tmp_path, dashscope_api_key=SecretStr(KEY), **fields)
    return Relay(settings, tmp_path)


TURN = record("turn ended", "graphs.keeping", assistants=["员工手册"], total_ms=1.5)
STATS = record("Worker stats", "langgraph_runtime_inmem.queue")
BROKEN = record("it broke", "langgraph_api.server", "error")
BANNER = "Welcome to\n"


@pytest.mark.parametrize(
    ("ready", "fields", "shown"),
    [
        pytest.param(True, {}, ["turn ended", "it broke"], id="our lines and its errors"),
        pytest.param(False, {}, ["turn ended"], id="its errors not while it starts"),
        pytest.param(
            True,
            {"log_level": "DEBUG"},
            ["Welcome", "Worker stats", "turn ended", "it broke"],
            id="everything when debugging",
        ),
    ],
)
def test_lines_that_reach_the_terminal(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ready: bool,
    fields: dict[str, Any],
    shown: list[str],
) -> None:
    passing = relay(tmp_path, **fields)
    passing.ready = ready
    passing.run([BANNER, STATS, TURN, BROKEN])

    found = capsys.readouterr().err.splitlines()
    assert len(found) == len(shown)
    assert all(words in line for words, line in zip(shown, found, strict=True))
    written = (tmp_path / "server.log").read_text(encoding="utf-8").splitlines()
    assert [f"{line}\n" for line in written] == [BANNER, STATS, TURN, BROKEN]


KNOWN = "<class 'chatbot.errors.ModelError'>(The model (x) refused: (400).)"
UNKNOWN = "<class 'KeyError'>('x')"


def failed(event: str, run: str) -> str:
    trace = "Traceback (most recent call last):\n  File x\nError: y"
    return record(event, "langgraph_api.worker", "error", run_id=run, exception=trace)


def test_a_run_that_ends_by_an_error_of_ours_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passing = relay(tmp_path)
    passing.ready = True
    passing.run(
        [
            failed(f"Run encountered an error in graph: {KNOWN}", "1"),
            failed(f"Run encountered an error in graph: {UNKNOWN}", "2"),
            failed(f"Run encountered an error in graph: {KNOWN}", "3"),
            failed(f"Background run failed. Exception: {KNOWN}", "1"),
        ]
    )
    said = "T ERROR   langgraph_api.worker: a run failed: The model (x) refused: (400)."
    first, unknown, last = capsys.readouterr().err.splitlines()
    assert first == last == said
    assert "Traceback" in unknown
    assert (tmp_path / "server.log").read_text(encoding="utf-8").count("Traceback") == 1


def test_traces_are_there_when_debugging(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relay(tmp_path, log_level="DEBUG").run([failed(KNOWN, "1"), failed(KNOWN, "1")])
    assert capsys.readouterr().err.count("Traceback") == 2


@pytest.mark.parametrize(
    ("form", "line"),
    [
        pytest.param(
            "text",
            'T INFO    graphs.keeping: turn ended assistants=["员工手册"] total_ms=1.5',
            id="text",
        ),
        pytest.param(
            "json",
            '{"event": "turn ended", "logger": "graphs.keeping", "level": "info", '
            '"timestamp": "T", "assistants": ["员工手册"], "total_ms": 1.5}',
            id="JSON",
        ),
    ],
)
def test_our_lines_lose_what_the_server_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, line: str
) -> None:
    relay(tmp_path, log_format=form).run([TURN])
    assert capsys.readouterr().err == f"{line}\n"


def test_secrets_reach_neither_terminal_nor_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [record(f"key {KEY}", "chatbot"), f"plain {KEY}\n"]
    relay(tmp_path, log_level="DEBUG").run(lines)
    assert KEY not in capsys.readouterr().err
    assert KEY not in (tmp_path / "server.log").read_text(encoding="utf-8")


TRACE = (
    "Traceback (most recent call last):\n"
    "  File x\n"
    "chatbot.errors.ConfigurationError: No key: set it.\n"
)


@pytest.mark.parametrize(
    ("lines", "failure"),
    [
        pytest.param([], None, id="nothing said"),
        pytest.param([BANNER, STATS], None, id="no error"),
        pytest.param(
            [record(TRACE, "uvicorn.error", "error"), STATS],
            ("ConfigurationError", "No key: set it."),
            id="record with a trace",
        ),
        pytest.param(
            TRACE.splitlines(keepends=True),
            ("ConfigurationError", "No key: set it."),
            id="plain trace",
        ),
        pytest.param(['{"not": \n', "[1]\n", "{}\n"], None, id="broken records"),
    ],
)
def test_reason_of_a_failed_start(
    tmp_path: Path, lines: list[str], failure: tuple[str, str] | None
) -> None:
    passing = relay(tmp_path)
    passing.run(lines)
    assert passing.failure() == failure
