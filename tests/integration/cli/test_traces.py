"""What a command says where LangSmith takes no traces."""

from pathlib import Path

import pytest

from serving.cli.startup import LOG_FILE
from tests.integration.cli.terminal import run
from tests.integration.graph.test_trace_faults import langsmith


def settings(url: str) -> dict[str, str]:
    return {
        "LANGSMITH_TRACING": "True",
        "LANGSMITH_API_KEY": "ls-a-key-of-nobody",
        "LANGSMITH_ENDPOINT": url,
    }


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("401", "refuses LANGSMITH_API_KEY"), ("500", "is out of order"), ("hang", "in time")],
)
def test_an_answer_without_its_trace_is_told(tmp_path: Path, fault: str, reason: str) -> None:
    with langsmith(fault) as url:
        answered = run(tmp_path, "ask", "Hello", settings=settings(url))
    assert answered.code == 0
    [line] = answered.err.splitlines()
    assert line.startswith("Traces do not reach LangSmith: ")
    assert reason in line
    log = (tmp_path / LOG_FILE).read_text(encoding="utf-8")
    assert "langsmith.client" not in log
    assert log.count("Traces do not reach LangSmith") == 1


@pytest.mark.parametrize("command", [("knowledge", "search", "Walden"), ("why",)])
def test_a_command_that_traces_nothing_says_nothing_of_it(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    run(tmp_path, "ask", "Hello")
    with langsmith("401") as url:
        found = run(tmp_path, *command, settings=settings(url))
    assert (found.code, found.err) == (0, "")
