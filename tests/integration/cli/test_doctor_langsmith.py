from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.cli.examined import DEAD, examined, states, words
from tests.servers.loopback import Loopback, Reply, Request

STATUSES = {"good-key": 200, "unlucky-key": 503}


async def langsmith(request: Request, reply: Reply) -> None:
    status = STATUSES.get(request.headers.get("x-api-key", ""), 401)
    await reply.json([], status=status)


@pytest.mark.parametrize(
    ("environment", "expected", "said"),
    [
        pytest.param({}, {"off"}, "no traces are sent", id="off"),
        pytest.param({"LANGSMITH_TRACING": "true"}, {"fail"}, "without a key", id="no key"),
        pytest.param(
            {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": f"http://{DEAD}"},
            {"ok", "fail"},
            f"does not answer at http://{DEAD}",
            id="away",
        ),
        pytest.param(
            {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": "no address"},
            {"ok", "fail"},
            "Check LANGSMITH_ENDPOINT",
            id="no address",
        ),
    ],
)
async def test_langsmith_that_is_not_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: Mapping[str, str],
    expected: set[str],
    said: str,
) -> None:
    for name in ("LANGSMITH_TRACING", "LANGSMITH_API_KEY", "LANGSMITH_ENDPOINT"):
        monkeypatch.setenv(name, environment.get(name, ""))
    findings = await examined(tmp_path)

    assert states(findings, "langsmith") == expected
    assert said in words(findings, "langsmith")


@pytest.mark.parametrize(
    ("key", "expected", "said"),
    [
        pytest.param("good-key", {"ok"}, "into the project tests", id="works"),
        pytest.param("bad-key", {"ok", "fail"}, "refuses LANGSMITH_API_KEY", id="wrong key"),
        pytest.param("unlucky-key", {"ok", "warn"}, "status 503", id="out of order"),
    ],
)
async def test_langsmith_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, expected: set[str], said: str
) -> None:
    with Loopback(langsmith) as server:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_API_KEY", key)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", server.url)
        monkeypatch.setenv("LANGSMITH_PROJECT", "tests")
        findings = await examined(tmp_path)

        assert {request.method for request in server.requests} == {"GET"}
    assert states(findings, "langsmith") == expected
    assert said in words(findings, "langsmith")
    assert key not in words(findings, "langsmith")


async def test_what_leaves_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "True")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", f"http://{DEAD}")
    told = words(await examined(tmp_path), "langsmith")
    assert "Every turn is traced; hidden: nothing but secrets." in told

    monkeypatch.setenv("LANGSMITH_HIDE_INPUTS", "1")
    monkeypatch.setenv("LANGCHAIN_HIDE_METADATA", "yes")
    monkeypatch.setenv("LANGSMITH_TRACING_SAMPLING_RATE", "0.125")
    told = words(await examined(tmp_path), "langsmith")
    assert "12.5% of the turns are traced; hidden: questions, metadata." in told
