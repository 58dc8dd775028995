"""That LangSmith takes no traces is told once, in a line of ours, until it takes them again."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from langsmith.utils import LangSmithConflictError

from chatbot.settings import Settings
from chatbot.traces.delivery import AGAIN_SECONDS, QUIET_SECONDS, Delivery
from graphs import Chatbot, open_chatbot
from tests.integration.graph.test_trace_faults import langsmith
from tests.servers.traces import TraceSink, trace_sink
from tests.trajectories import tracing

OURS = "chatbot.traces.delivery"
LIBRARY = "langsmith.client"


def told(caplog: pytest.LogCaptureFixture, logger: str = OURS) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == logger]


@pytest.fixture
def sink() -> Iterator[TraceSink]:
    with trace_sink() as sink, tracing(sink.url):
        yield sink


async def asked(bot: Chatbot, turns: int) -> None:
    """Answer some questions, and have what is traced sent before the next."""
    for _ in range(turns):
        await bot.ask("Hello")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("401", "it refuses LANGSMITH_API_KEY (status 401)"),
        ("403", "it refuses LANGSMITH_API_KEY (status 403)"),
        ("404", "it refuses what is sent (status 404)"),
        ("429", "it takes no more for now (status 429)"),
        ("500", "it is out of order (status 500)"),
        ("503", "it is out of order (status 503)"),
        ("dead", "it cannot be reached (LangSmithConnectionError)"),
        ("hang", "it does not answer in time"),
    ],
)
async def test_what_is_wrong_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str, reason: str
) -> None:
    with langsmith(fault) as url, tracing(url), caplog.at_level(logging.WARNING):
        async with open_chatbot(Settings(chatbot_data_dir=tmp_path)) as bot:
            await asked(bot, 3)
    [line] = told(caplog)
    assert line.startswith(f"Traces do not reach LangSmith: {reason}")
    assert told(caplog, LIBRARY) == []


async def test_a_langsmith_that_works_is_not_talked_of(
    tmp_path: Path, sink: TraceSink, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with open_chatbot(Settings(chatbot_data_dir=tmp_path)) as bot:
            await asked(bot, 2)
    assert sink.wait_for_roots(2)
    assert told(caplog) == []


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fail(delivery: Delivery, error: Exception) -> None:
    with pytest.raises(type(error)), delivery.sending():
        raise error


def test_it_is_told_again_after_a_long_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    delivery = Delivery(clock)
    fail(delivery, requests.Timeout())
    clock.now += QUIET_SECONDS - 1
    fail(delivery, requests.Timeout())
    assert len(told(caplog)) == 1
    clock.now += 1
    fail(delivery, requests.Timeout())
    assert len(told(caplog)) == 2


def test_it_is_told_again_once_it_worked_but_not_all_the_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    delivery = Delivery(clock)
    caplog.set_level(logging.INFO)
    for _ in range(10):  # in turns
        fail(delivery, requests.Timeout())
        with delivery.sending():
            pass
    assert len([line for line in told(caplog) if "do not reach" in line]) == 1
    assert "Traces reach LangSmith again." in told(caplog)
    caplog.clear()
    clock.now += AGAIN_SECONDS
    fail(delivery, requests.Timeout())
    assert len(told(caplog)) == 1


def test_what_it_has_already_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    delivery = Delivery()
    fail(delivery, LangSmithConflictError())
    assert told(caplog) == []
    assert delivery.under_way == 0
