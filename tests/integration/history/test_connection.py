"""The connection to MongoDB: whose options it has, and what a silent server costs."""

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from chatbot.domain import Session
from chatbot.errors import HistoryError
from chatbot.history.connection import Client, open_client
from chatbot.history.mongodb import MongoChatHistory
from tests.integration.history.stores import turn
from tests.servers.mongod import Mongod
from tests.stopwatch import Stopwatch

SESSION = Session(session_id="s")
LONG = "serverSelectionTimeoutMS=30000&connectTimeoutMS=30000&timeoutMS=60000"


@pytest.mark.parametrize(
    ("options", "read", "expected"),
    [
        pytest.param("", lambda o: o.pool_options.max_pool_size, 20, id="ours"),
        pytest.param(
            "maxPoolSize=1", lambda o: o.pool_options.max_pool_size, 1, id="size of the pool"
        ),
        pytest.param(
            "MAXPOOLSIZE=2", lambda o: o.pool_options.max_pool_size, 2, id="in large letters"
        ),
        pytest.param("appName=mine", lambda o: o.pool_options.appname, "mine", id="name"),
        pytest.param(
            "serverSelectionTimeoutMS=50", lambda o: o.server_selection_timeout, 0.05, id="wait"
        ),
        pytest.param("retryWrites=false", lambda o: o.retry_writes, False, id="no retry"),
        pytest.param("w=0", lambda o: o.write_concern.document, {"w": 0}, id="no answer"),
        pytest.param(
            "journal=false", lambda o: o.write_concern.document, {"j": False}, id="no journal"
        ),
        pytest.param("tz_aware=false", lambda o: o.codec_options.tz_aware, True, id="no zone"),
        pytest.param(
            "tls=true&tlsAllowInvalidCertificates=true",
            lambda o: o.pool_options._ssl_context is not None,  # noqa: SLF001 - no other way
            True,
            id="TLS",
        ),
    ],
)
async def test_the_options_of_the_address_go_before_ours(
    options: str, read: Callable[[object], object], expected: object
) -> None:
    async with open_client(f"mongodb://user:secret@127.0.0.1:1/?{options}") as client:
        assert read(client.options) == expected


async def test_what_is_written_is_kept_whatever_the_address_says(mongod: Mongod) -> None:
    async with open_client(f"{mongod.uri}&w=0&readPreference=secondary") as client:
        history = MongoChatHistory(client, database="options", collection="c", ttl_days=1)
        await history.save(SESSION, turn("1"))
        assert await history.find(SESSION, "1") == turn("1")
        await history.close()
        await client.drop_database("options")


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"mongodb://127.0.0.1:{listener.getsockname()[1]}/?directConnection=true"


async def failing(client: Client) -> float:
    """Return the seconds that a call takes until it is given up."""
    history = MongoChatHistory(client, database="x", collection="c", ttl_days=1)
    start, stopwatch = time.perf_counter(), Stopwatch()
    with pytest.raises(HistoryError) as raised:
        await history.load(SESSION, limit=1)
    took = stopwatch.seconds()
    assert time.perf_counter() - start > 0.3  # it was waited for
    assert raised.value.retryable
    await history.close()
    return took


async def test_a_silent_server_costs_a_call_less_than_a_second(silent: str) -> None:
    async with open_client(silent) as client:
        assert await failing(client) < 1.3


async def test_no_option_makes_a_call_longer_and_that_is_said(
    silent: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_client(f"{silent}&{LONG}") as client:
        assert await failing(client) < 1.4
    assert "serverSelectionTimeoutMS, connectTimeoutMS in MONGODB_URI" in caplog.text
