"""Every command that MongoDB gets names the user whose documents it is about."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.monitoring import CommandListener, CommandStartedEvent

from chatbot.domain import Session
from chatbot.history.archive import export_session, import_session
from chatbot.history.connection import Client, open_client
from chatbot.history.mongodb import MongoChatHistory
from chatbot.images.image import image_of
from chatbot.leases.mongodb import MongoLeases
from tests.integration.history.stores import turn
from tests.servers.mongod import Mongod

DATABASE = "commands"
FILTERED = {"find", "findAndModify", "update", "delete", "aggregate", "count", "distinct"}
# What is done for all users: leases that expired, sessions of other versions.
MAINTENANCE = {
    ("find", "chat_history_leases", "$expr"),
    ("find", "chat_history_sessions", "version"),
    ("find", "chat_history_sessions", "_id version"),
}
Command = tuple[str, str, Mapping[str, Any]]


class Recorder(CommandListener):
    """Keeps the name, the collection and each filter of the commands of a client."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def started(self, event: CommandStartedEvent) -> None:
        name, command = event.command_name, event.command
        if event.database_name == DATABASE and name in FILTERED:
            self.commands += [(name, command[name], each) for each in filters(name, command)]

    def succeeded(self, event: object) -> None:
        pass

    def failed(self, event: object) -> None:
        pass


def filters(name: str, command: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    match name:
        case "find":
            yield command.get("filter", {})
        case "findAndModify" | "count" | "distinct":
            yield command.get("query", {})
        case "update":
            yield from (each["q"] for each in command["updates"])
        case "delete":
            yield from (each["q"] for each in command["deletes"])
        case "aggregate":
            yield command["pipeline"][0].get("$match", {})


def names_its_user(where: Mapping[str, Any]) -> bool:
    """Tell whether a filter is about one user; what LangChain's class wrote has none.

    The key of a session holds its user.
    """
    user, key = where.get("user_id", ""), where.get("_id")
    if isinstance(key, str) and key.startswith(("alice ", "owner ")):
        return True
    return user is None or bool(user if isinstance(user, str) else user.get("$in"))


def are_named(where: Mapping[str, Any]) -> bool:
    """Tell whether a filter names its user, itself or in each of its branches."""
    branches = where.get("$or", ())
    return names_its_user(where) or (bool(branches) and all(map(names_its_user, branches)))


def is_maintenance(command: Command) -> bool:
    name, collection, where = command
    return (name, collection, " ".join(sorted(where))) in MAINTENANCE


async def do_everything(client: Client, raw: Client, owner: str, user: str) -> None:
    """Do all that can be done with sessions, and with what LangChain's class wrote."""
    history = MongoChatHistory(
        client, database=DATABASE, collection="chat_history", ttl_days=30, owner=owner
    )
    leases = MongoLeases(client, database=DATABASE, collection="chat_history")
    session, begun = Session(session_id="s", user_id=user), datetime.now(UTC)
    theirs = Session(session_id="theirs", user_id=user)
    row = {"SessionId": "theirs", "History": '{"type": "human", "data": {"content": "q"}}'}
    await raw[DATABASE].chat_history.insert_one(row)
    for answer in ("", "half"):
        await leases.claim(session, turn("1", answer=answer, started_at=begun))
    await leases.running(session)
    await leases.abandoned(9)
    await history.save(session, turn("1", answer="half", status="stopped"))
    await history.save(session, turn("1"))
    await leases.release(session, "1")
    assert len(await history.turns(theirs)) == (user == owner)
    assert len((await history.load(session, limit=9)).turns) == 1
    assert await history.find(session, "1") is not None
    assert len(await history.search(user, "question", limit=9)) == 1
    assert await history.rename(session, "title")
    assert len(await history.sessions(user, limit=9)) == 1 + (user == owner)
    image = image_of(b"\x89PNG\r\n\x1a\n", 99)
    for _ in range(2):
        await history.keep_image(session, image)
    assert await history.find_image(user, image.name) == image
    long_ago = {"$set": {"kept_at": datetime(2020, 1, 1, tzinfo=UTC)}}
    await raw[DATABASE].chat_history_sessions.update_many({}, long_ago)
    await history.save(session, turn("2", second=1))
    data = await export_session(history, session)
    await import_session(history, data, user_id=user, session_id="copy")
    assert await history.clear(session) == 2
    assert await history.forget_user(user) == 1 + (user == owner)
    await history.save(Session(session_id="new", user_id=user), turn("3", started_at=begun))
    await raw[DATABASE].chat_history_sessions.update_many({}, {"$set": {"version": 1}})
    await raw[DATABASE].chat_history.update_many({}, {"$set": {"version": 1}})
    await history._indexes.close()  # noqa: SLF001 - what went on in the background
    await history._store.schema.migrate()  # noqa: SLF001 - done once for each process
    await history.close()


@pytest.mark.parametrize("user", ["alice", "owner"])
async def test_every_command_names_its_user(mongod: Mongod, user: str) -> None:
    recorder = Recorder()
    watched: Client = AsyncMongoClient(mongod.uri, tz_aware=True, event_listeners=[recorder])
    async with open_client(mongod.uri) as raw, watched as client:
        await raw.drop_database(DATABASE)
        await do_everything(client, raw, "owner", user)
    assert {name for name, _, _ in recorder.commands} >= FILTERED - {"count", "distinct"}
    unnamed = [each for each in recorder.commands if not are_named(each[2])]
    assert [each for each in unnamed if not is_maintenance(each)] == []
