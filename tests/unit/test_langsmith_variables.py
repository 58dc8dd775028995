"""LangSmith's variables are written as those of the settings are."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from langsmith.utils import get_env_var, tracing_is_enabled

from chatbot.errors import ConfigurationError
from chatbot.settings import Settings

YES = ["true", "True", "TRUE", "1", "yes", "on"]
NO = ["false", "False", "0", "no", ""]


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    before = dict(os.environ)
    cached = cast("Any", get_env_var)  # LangSmith reads each variable once
    cached.cache_clear()
    yield
    os.environ.clear()
    os.environ.update(before)
    cached.cache_clear()


@pytest.mark.parametrize("value", [*YES, *NO])
@pytest.mark.parametrize("prefix", ["LANGSMITH", "LANGCHAIN"])
@pytest.mark.parametrize("what", ["inputs", "outputs", "metadata"])
def test_what_is_hidden(tmp_path: Path, prefix: str, what: str, value: str) -> None:
    os.environ[f"{prefix}_HIDE_{what.upper()}"] = value
    settings = Settings.load(tmp_path)
    assert getattr(settings, f"langsmith_hide_{what}") is (value in YES)
    # Other parts of the process, such as evaluations, hear of it from LangSmith's library.
    assert (get_env_var(f"HIDE_{what.upper()}") == "true") is (value in YES)


@pytest.mark.parametrize("value", [*YES, *NO])
@pytest.mark.parametrize("name", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_whether_turns_are_traced(tmp_path: Path, name: str, value: str) -> None:
    del os.environ["LANGSMITH_TRACING"]
    os.environ[name] = value
    assert Settings.load(tmp_path).langsmith_tracing is (value in YES)
    assert tracing_is_enabled() is (value in YES)


def test_a_file_counts_as_the_environment_does(tmp_path: Path) -> None:
    del os.environ["LANGSMITH_TRACING"]
    file = tmp_path / ".env.local"
    file.write_text("LANGCHAIN_TRACING_V2=1\nLANGSMITH_TRACING_SAMPLING_RATE=0.25\n")
    settings = Settings.load(tmp_path)
    assert settings.langsmith_tracing
    assert settings.langsmith_tracing_sampling_rate == 0.25
    assert settings.source("langsmith_tracing") == str(file)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("LANGSMITH_HIDE_INPUTS", "perhaps", "must be true or false"),
        ("LANGCHAIN_HIDE_METADATA", "2", "must be true or false"),
        ("LANGSMITH_TRACING", "maybe", "must be true or false"),
        ("LANGSMITH_TRACING_SAMPLING_RATE", "abc", "must be a number"),
        ("LANGCHAIN_TRACING_SAMPLING_RATE", "1.5", "must be less than or equal to 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, name: str, value: str, rule: str
) -> None:
    del os.environ["LANGSMITH_TRACING"]  # the tests' own
    os.environ[name] = value
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(tmp_path)
    assert str(caught.value) == f"{name}={value!r} (from the environment): {rule}"
