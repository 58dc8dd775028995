"""What all tests may ask for."""

import os
import signal
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import settings

from chatbot.settings import Settings
from tests.servers.mongod import Mongod

# How long an example takes depends on what else the machine does.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings() -> Iterator[Mapping[str, str]]:
    """Keep the settings, keys and traces of whoever runs the tests out of them.

    Gives the environment as it was, for tests that log to LangSmith where a key is set.
    """
    before = dict(os.environ)
    for name in list(os.environ):
        if name.lower() in Settings.model_fields or name.startswith(("LANGSMITH", "LANGCHAIN")):
            del os.environ[name]
    os.environ["LANGSMITH_TRACING"] = "false"
    if "LANGSMITH_API_KEY" not in before:
        os.environ["LANGSMITH_TEST_TRACKING"] = "false"  # heeded by LangSmith's own plugin
    yield before
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session", autouse=True)
def heeded_interrupts() -> None:
    """Let the programs under test hear Ctrl-C, also where the tests run in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def mongod() -> Iterator[Mongod]:
    """A MongoDB that all tests share: none may stop it."""
    with Mongod() as server:
        yield server
