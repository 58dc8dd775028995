"""What MongoDB holds: expiry, LangChain's view of it, cost, and refused credentials."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.bootstrap import open_ports
from chatbot.domain import Session
from chatbot.errors import ConfigurationError, HistoryError, InputError
from chatbot.history.connection import Client, open_client
from chatbot.history.mongodb import MongoChatHistory
from chatbot.settings import Settings
from tests.integration.history.stores import looking_into, mongo_history, turn
from tests.servers.mongod import Mongod
from tests.stopwatch import Stopwatch

SESSION = Session(session_id="s")
SECOND_IN_DAYS = 1 / 86400


@pytest.fixture
async def client(mongod: Mongod) -> AsyncIterator[Client]:
    async with looking_into(mongod) as opened:
        yield opened


@pytest.fixture
async def database(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    name = f"mongodb_{abs(hash(request.node.name))}"
    await client.drop_database(name)
    yield name
    await client.drop_database(name)


def days(seconds: float) -> float:
    return seconds * SECOND_IN_DAYS


async def until_empty(client: Client, database: str) -> None:
    """Return when MongoDB itself has removed every document."""
    async with asyncio.timeout(60):
        while await client[database].chat_history.count_documents({}):  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.2)
        while await client[database].chat_history_sessions.count_documents({}):  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.2)


async def test_an_expired_session_is_never_shown_and_then_removed_as_a_whole(
    mongod: Mongod, client: Client, database: str
) -> None:
    async with mongo_history(mongod, database, ttl_days=days(2)) as history:
        for number in range(3):
            await history.save(SESSION, turn(str(number), second=number))
        assert len((await history.load(SESSION, limit=9)).turns) == 3
        await asyncio.sleep(2.05)
        assert (await history.load(SESSION, limit=9)).turns == ()
        assert await history.find(SESSION, "0") is None
        assert await history.sessions("anonymous", limit=9) == ()
        assert await history.clear(SESSION) == 0
        await until_empty(client, database)


async def test_an_active_session_keeps_its_first_turn(mongod: Mongod, database: str) -> None:
    async with mongo_history(mongod, database, ttl_days=days(2)) as history:
        end = time.monotonic() + 5.5  # far past the life of the first turn's own document
        number = 0
        while time.monotonic() < end:
            await history.save(SESSION, turn(str(number), second=number))
            number += 1
            await asyncio.sleep(0.25)
        loaded = await history.load(SESSION, limit=1000)
        assert [turn.id for turn in loaded.turns] == [str(n) for n in range(number)]


async def test_an_expired_session_begins_anew(
    mongod: Mongod, client: Client, database: str
) -> None:
    async with mongo_history(mongod, database, ttl_days=days(2)) as history:
        await history.save(SESSION, turn("old"))
        await asyncio.sleep(2.05)
        await history.save(SESSION, turn("new", second=1))
        assert [t.id for t in (await history.load(SESSION, limit=9)).turns] == ["new"]
        (summary,) = await history.sessions("anonymous", limit=9)
        assert (summary.title, summary.turns) == ("question new", 1)
    assert await client[database].chat_history.distinct("turn") == ["new"]


async def test_a_changed_setting_changes_the_expiry_of_what_is_there(
    mongod: Mongod, client: Client, database: str
) -> None:
    async with mongo_history(mongod, database, ttl_days=30) as history:
        await history.save(SESSION, turn("a"))
    async with mongo_history(mongod, database, ttl_days=60) as history:
        await history.save(SESSION, turn("b", second=1))
    async with mongo_history(mongod, database, ttl_days=days(1)) as history:
        await history.load(SESSION, limit=1)
    indexes = await client[database].chat_history_sessions.index_information()
    assert indexes["last_active_1"]["expireAfterSeconds"] == 1
    await until_empty(client, database)


async def test_the_longest_life_is_one_that_mongodb_takes(
    mongod: Mongod, client: Client, database: str
) -> None:
    async with mongo_history(mongod, database, ttl_days=36500) as history:
        await history.save(SESSION, turn("a"))
        assert len((await history.load(SESSION, limit=1)).turns) == 1
    indexes = await client[database].chat_history_sessions.index_information()
    assert indexes["last_active_1"]["expireAfterSeconds"] == 2**31 - 1


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"History": "{"}, id="broken JSON"),
        pytest.param({"History": '{"type": "alien", "data": {}}'}, id="unknown message"),
        pytest.param({"History": None}, id="no history"),
        pytest.param({"History": "{}", "turn": "x", "seq": 10**18}, id="half of our fields"),
        pytest.param(
            {"turn": "x", "seq": 10**18, "text": "", "answer": "", "record": "[", "status": ""},
            id="broken record",
        ),
    ],
)
async def test_a_corrupt_row_does_not_take_the_session_with_it(
    mongod: Mongod, client: Client, database: str, damage: dict[str, Any]
) -> None:
    async with mongo_history(mongod, database) as history:
        await history.save(SESSION, turn("1"))
        row = {"SessionId": "s", "user_id": "anonymous"} | damage
        await client[database].chat_history.insert_one(row)
        await history.save(SESSION, turn("2", second=1))
        assert [t.id for t in (await history.load(SESSION, limit=9)).turns] == ["1", "2"]
        assert await history.find(SESSION, "2") == turn("2", second=1)


async def test_loading_costs_the_same_however_long_the_session(
    mongod: Mongod, client: Client, database: str
) -> None:
    examined = {}
    for turns in (20, 2000):
        session = Session(session_id=f"s{turns}")
        async with mongo_history(mongod, database) as history:
            await history.save(session, turn("first"))
        messages = client[database].chat_history
        model = await messages.find_one({"SessionId": session.session_id})
        assert model is not None
        await messages.insert_many(
            [
                model | {"_id": f"{turns}:{n}", "turn": str(n), "seq": model["seq"] + n}
                for n in range(2, 2 * turns, 2)
            ]
        )
        await client.admin.command("profile", 0)
        await client[database].command("profile", 2)
        async with mongo_history(mongod, database) as history:
            assert len((await history.load(session, limit=10)).turns) == 10
        await client[database].command("profile", 0)
        profile = client[database]["system.profile"]
        queries = await profile.find(
            {"ns": f"{database}.chat_history", "op": "query"}
        ).to_list()
        examined[turns] = sum(query["keysExamined"] for query in queries)
        await profile.drop()
    assert examined[20] == examined[2000] <= 20


async def test_a_session_of_another_owner_is_refused(mongod: Mongod, database: str) -> None:
    async with mongo_history(mongod, database, owner="alice") as history:
        await history.save(Session(session_id="s", user_id="alice"), turn("1"))
    async with mongo_history(mongod, database) as history:
        assert (await history.load(SESSION, limit=9)).turns == ()
        with pytest.raises(InputError, match="another user"):
            await history.save(SESSION, turn("1"))


@pytest.fixture(scope="module")
def locked() -> Iterator[Mongod]:
    """A MongoDB that asks for a password; `reader` may only read."""
    with Mongod() as server:
        # Kept on the disk before it is killed.
        kept = {"pwd": "right", "writeConcern": {"w": 1, "j": True}}
        server.command("createUser", "writer", roles=["readWriteAnyDatabase"], **kept)
        server.command("createUser", "reader", roles=["readAnyDatabase"], **kept)
        server.kill()
        server.start("--auth")
        yield server


async def test_an_import_that_came_no_further_than_its_first_step_is_no_obstacle(
    mongod: Mongod, database: str
) -> None:
    async with mongo_history(mongod, database) as history:
        await history.revive(SESSION, at=datetime.now(UTC))
        assert (await history.load(SESSION, limit=9)).turns == ()
        assert await history.find(SESSION, "1") is None
        assert await history.turns(SESSION) == ()
        assert await history.sessions(SESSION.user_id, limit=9) == ()
        assert await history.clear(SESSION) == 0
        await history.revive(SESSION, at=datetime.now(UTC))
        await history.restore(SESSION, "here", [turn("1")])
        await history.save(SESSION, turn("2", started_at=datetime.now(UTC)))
        assert [each.id for each in await history.turns(SESSION)] == ["1", "2"]


@pytest.mark.parametrize(
    "credentials",
    [
        pytest.param("writer:wrong-secret@", id="wrong password"),
        pytest.param("nobody:wrong-secret@", id="unknown user"),
        pytest.param("", id="no user"),
        pytest.param("reader:right@", id="may not write"),
    ],
)
async def test_refused_credentials_are_a_configuration_error_at_once(
    locked: Mongod, credentials: str
) -> None:
    uri = locked.uri.replace("mongodb://", f"mongodb://{credentials}")
    async with open_client(uri) as client:
        history = MongoChatHistory(client, database="x", collection="x", ttl_days=1)
        stopwatch = Stopwatch()
        with pytest.raises(ConfigurationError, match="MONGODB_URI") as raised:
            await history.save(SESSION, turn("1"))
        assert stopwatch.seconds() < 0.9  # no outage, which takes a second
        assert "secret" not in str(raised.value)
        await history.close()


@pytest.mark.parametrize("credentials", ["writer:wrong-secret@", "nobody:wrong-secret@", ""])
async def test_refused_credentials_are_told_at_the_start(
    locked: Mongod, credentials: str, tmp_path: Path
) -> None:
    uri = locked.uri.replace("mongodb://", f"mongodb://{credentials}")
    settings = Settings(chatbot_data_dir=tmp_path, mongodb_uri=SecretStr(uri))
    with pytest.raises(ConfigurationError, match="MONGODB_URI") as raised:
        async with open_ports(settings):
            pytest.fail("it was opened")
    assert "secret" not in str(raised.value)


async def test_a_user_without_the_right_to_make_indexes_can_talk(locked: Mongod) -> None:
    locked_role = locked.uri.replace("mongodb://", "mongodb://writer:right@")
    async with open_client(locked_role) as client:
        history = MongoChatHistory(client, database="y", collection="y", ttl_days=1)
        assert await history.save(SESSION, turn("1")) == ""
        assert await history.check() == ""
        await history.close()


@pytest.mark.parametrize(
    "uri",
    [
        pytest.param("mongodb://", id="no host"),
        pytest.param("mongodb://user:sec/ret@host", id="password not quoted"),
        pytest.param("mongodb://user:secret@host:port", id="port is no number"),
        pytest.param("mongodb://user:secret@host/?authSource=", id="wrong mechanism"),
    ],
)
async def test_an_unusable_address_is_a_configuration_error(uri: str) -> None:
    with pytest.raises(ConfigurationError, match="MONGODB_URI") as raised:
        open_client(uri)
    assert "sec" not in str(raised.value)


async def test_an_unknown_option_of_the_address_is_ignored_without_repeating_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_client("mongodb://user:secret@host/?tls=secret&secret=1"):
        assert "2 options in MONGODB_URI" in caplog.text
        assert "secret" not in caplog.text


async def test_an_unreachable_server_is_an_outage() -> None:
    with Mongod() as server:
        async with mongo_history(server, "x") as history:
            await history.save(SESSION, turn("1"))
            server.kill()
            for call in (
                history.load(SESSION, limit=1),
                history.save(SESSION, turn("2")),
            ):
                with pytest.raises(HistoryError, match="MongoDB") as raised:
                    await call
                assert raised.value.retryable
            assert "MongoDB" in await history.check()
