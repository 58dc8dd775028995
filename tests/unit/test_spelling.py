"""Names that are almost settings."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chatbot.settings import PROJECT, Settings
from chatbot.spelling import misspelled
from chatbot.traces.variables import known_names

SETTINGS = {name.upper() for name in Settings.model_fields}
SETTINGS |= known_names(Settings.model_fields)


@pytest.fixture
def environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("RAGFLOW_APIKEY", "RAGFLOW_API_KEY", id="an underscore is missing"),
        pytest.param("MODEL_FILE", "MODELS_FILE", id="a letter is missing"),
        pytest.param("DASHCOPE_API_KEY", "DASHSCOPE_API_KEY", id="a typing error"),
        pytest.param("SUMMARISE_HISTORY", "SUMMARIZE_HISTORY", id="British"),
        pytest.param("RAGFLOW_URL", "RAGFLOW_BASE_URL", id="a word is missing"),
        pytest.param("TURN_TIMEOUT", "TURN_TIMEOUT_SECONDS", id="the unit is missing"),
        pytest.param("MONGO_URI", "MONGODB_URI", id="shorter"),
        pytest.param("OPENAI_API_BASE", "OPENAI_BASE_URL", id="an old name"),
        pytest.param("LANGSMITH_APIKEY", "LANGSMITH_API_KEY", id="of LangSmith"),
        pytest.param("LANGSMITH_HIDE_INPUT", "LANGSMITH_HIDE_INPUTS", id="what is hidden"),
        pytest.param("LANGCHAIN_HIDE_OUTPUT", "LANGCHAIN_HIDE_OUTPUTS", id="its old name"),
        pytest.param(
            "LANGSMITH_SAMPLING_RATE", "LANGSMITH_TRACING_SAMPLING_RATE", id="how many"
        ),
    ],
)
def test_the_name_that_is_meant_is_found(name: str, meant: str) -> None:
    assert misspelled([[name, "PATH"], [], []], SETTINGS) == {name: meant}
    assert misspelled([[name, meant], [], []], SETTINGS) == {}


@pytest.mark.parametrize(
    ("places", "is_suspected"),
    [
        pytest.param([["HEADSTART"], [], ["HEAD_START"]], True, id="beside a default"),
        pytest.param([[], ["HEADSTART"], ["HEAD_START"]], True, id="in the second place"),
        pytest.param([[], [], ["HEAD_START", "HEADSTART"]], True, id="among the defaults"),
        pytest.param([["HEADSTART"], ["HEAD_START"], []], True, id="before what it means"),
        pytest.param([["HEAD_START"], ["HEADSTART"], []], False, id="behind what it means"),
        pytest.param([["HEAD_START", "HEADSTART"], [], []], False, id="beside what it means"),
    ],
)
def test_only_what_counts_as_much_clears_a_name(
    places: Sequence[Sequence[str]], *, is_suspected: bool
) -> None:
    expected = {"HEADSTART": "HEAD_START"} if is_suspected else {}
    assert misspelled(places, SETTINGS) == expected


@pytest.mark.parametrize(
    "name",
    [
        *["PATH", "LOGNAME", "SESSION_MANAGER", "OUTPUT", "TOKEN", "PASSWORD"],
        *["OPENAI_ORG_ID", "OPENAI_API_TYPE", "LANGSMITH_TRACING_V2", "LANGCHAIN_API_KEY"],
        *["LANGCHAIN_TRACING_V2", "LANGSMITH_METADATA", "LANGSMITH_WORKSPACE_ID", "LANGUAGE"],
        *["LANGGRAPH_API_KEY", "LANGSMITH_TRACING_MODE", "LANG", "LANGCHAIN_PROJECT"],
        *["MONGODB_SERVICE_HOST", "MONGODB_PORT", "RAGFLOW_PORT", "RAGFLOW_VERSION", ""],
        *sorted(SETTINGS),
    ],
)
def test_other_names_are_not_suspected(name: str) -> None:
    assert misspelled([[name], [], []], SETTINGS) == {}


@pytest.mark.usefixtures("environment")
def test_loading_warns_of_names_without_their_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / ".env.local"
    file.write_text("RAGFLOW_APIKEY=hidden\nPASSAGE=hidden\n", encoding="utf-8")
    committed = PROJECT / ".env"
    (tmp_path / ".env").write_bytes(committed.read_bytes())
    os.environ |= {"MODEL_FILE": "hidden.toml", "HEADSTART": "hidden"}
    with caplog.at_level(logging.WARNING):
        settings = Settings.load(tmp_path)
    assert set(settings.misspelled) >= {
        f"RAGFLOW_APIKEY (from {file}) is no setting. Did you mean RAGFLOW_API_KEY?",
        f"PASSAGE (from {file}) is no setting. Did you mean PASSAGES?",
        "MODEL_FILE (from the environment) is no setting. Did you mean MODELS_FILE?",
        "HEADSTART (from the environment) is no setting. Did you mean HEAD_START?",
    }
    assert all(sentence in caplog.text for sentence in settings.misspelled)
    assert "hidden" not in caplog.text
