"""`chatbot keys create`: the assistants that a key may ask are those that there are."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.cli.examined import DEAD
from tests.integration.cli.terminal import Result, run
from tests.integration.knowledge.ragflow import dataset
from tests.servers.ragflow import RagflowServer
from tests.servers.ragflow_knowledge import Chat

REMOTE = Chat(name="报销助手", datasets=[dataset("travel", "Taxis are refunded.")])


def created(
    tmp_path: Path, *names: str, settings: Mapping[str, str] | None = None
) -> tuple[Result, list[list[str]]]:
    """Make a key for these assistants; return what was said, and what the keys may ask."""
    options = [option for name in names for option in ("--assistant", name)]
    known = {"AUTH_KEYS_DIR": str(tmp_path / "keys"), **(settings or {})}
    result = run(tmp_path, "keys", "create", "ann", *options, settings=known)
    keys = json.loads(run(tmp_path, "keys", "list", "--json", settings=known).out)
    return result, [key["assistants"] for key in keys]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["handbook"], id="id"),
        pytest.param(["员工手册 Employee Handbook"], id="name"),
        pytest.param(["handbook", "walden"], id="several"),
    ],
)
def test_key_for_assistants_that_there_are(tmp_path: Path, names: list[str]) -> None:
    result, keys = created(tmp_path, *names)

    assert result.code == 0
    assert result.out.startswith("cb_")
    assert keys == [names]


def test_no_key_is_made_for_an_assistant_that_there_is_not(tmp_path: Path) -> None:
    result, keys = created(tmp_path, "handbook", "handbok")

    assert (result.code, result.out) == (2, "")
    assert "There is no assistant 'handbok'" in result.err
    assert "员工手册 Employee Handbook" in result.err
    assert keys == []


def test_assistants_of_ragflow(tmp_path: Path) -> None:
    with RagflowServer([REMOTE]) as server:
        settings = {"RAGFLOW_BASE_URL": server.url, "RAGFLOW_API_KEY": server.key}
        for name in (REMOTE.name, REMOTE.id):
            assert created(tmp_path, name, settings=settings)[0].code == 0
        result, keys = created(tmp_path, "handbook", settings=settings)

    assert (result.code, result.out) == (2, "")
    assert "There are: 报销助手." in result.err
    assert keys == [[REMOTE.name], [REMOTE.id]]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"RAGFLOW_BASE_URL": f"http://{DEAD}", "RAGFLOW_API_KEY": "k"}, id="RAGFlow is away"
        ),
        pytest.param({"KNOWLEDGE_DIR": "/nowhere"}, id="no folder"),
    ],
)
def test_unreachable_knowledge_is_only_a_warning(
    tmp_path: Path, settings: Mapping[str, str]
) -> None:
    result, keys = created(tmp_path, "handbook", settings=settings)

    assert result.code == 0
    assert result.out.startswith("cb_")
    assert "nobody knows whether there is an assistant handbook" in result.err
    assert keys == [["handbook"]]


def test_what_else_is_away_does_not_matter(tmp_path: Path) -> None:
    settings = {"MONGODB_URI": "mongodb://", "OPENAI_BASE_URL": f"http://{DEAD}/v1"}
    result, keys = created(tmp_path, "handbook", settings=settings)

    assert (result.code, keys) == (0, [["handbook"]])
    assert len(result.err.splitlines()) == 1
