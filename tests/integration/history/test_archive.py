"""Sessions that are exported and imported again."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatbot.domain import Session, Turn
from chatbot.errors import InputError
from chatbot.history.archive import export_session, import_session
from chatbot.history.local import LocalChatHistory
from tests.integration.history.stores import START, mongo_history, turn
from tests.servers.mongod import Mongod

ALICE = Session(session_id="s", user_id="alice")
TURNS = [
    turn(
        "1", answer="瓦尔登湖 {", intent="general_chat", passages=[{"text": "…", "score": 0.5}]
    ),
    turn("2", status="stopped", answer="ha", second=1),
    turn("3", status="failed", answer="", second=2),
]


@pytest.fixture
async def store() -> AsyncIterator[LocalChatHistory]:
    async with LocalChatHistory(":memory:") as history:
        for each in TURNS:
            await history.save(ALICE, each)
        await history.rename(ALICE, "About Walden")
        yield history


async def test_an_exported_session_comes_back_elsewhere_as_it_was(
    store: LocalChatHistory, mongod: Mongod
) -> None:
    text = json.dumps(await export_session(store, ALICE))
    async with mongo_history(mongod, "archive") as elsewhere:
        await elsewhere.forget_user("bob")
        for _ in range(2):
            session = await import_session(elsewhere, json.loads(text), user_id="bob")
        assert session == Session(session_id="s", user_id="bob")
        assert list(await elsewhere.turns(session)) == TURNS
        summary = await elsewhere.summary(session)
        assert summary is not None
        assert (summary.title, summary.turns) == ("About Walden", 3)


async def test_an_import_never_mixes_with_another_session(store: LocalChatHistory) -> None:
    data = await export_session(store, ALICE)
    await store.save(ALICE, turn("4", second=9))
    with pytest.raises(InputError, match="another session id"):
        await import_session(store, data, user_id="alice")
    copy = await import_session(store, data, user_id="alice", session_id="copy")
    assert list(await store.turns(copy)) == TURNS


async def test_a_session_that_is_not_there_cannot_be_exported(store: LocalChatHistory) -> None:
    with pytest.raises(InputError, match="no session"):
        await export_session(store, Session(session_id="s", user_id="bob"))


GOOD: dict[str, Any] = {
    "format": "chatbot-session",
    "version": 1,
    "session_id": "s",
    "title": "t",
    "turns": [{"id": "1", "question": "q", "started_at": START.isoformat()}],
}


def with_turn(**changes: object) -> dict[str, Any]:
    return GOOD | {"turns": [GOOD["turns"][0] | changes]}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="nothing"),
        pytest.param([GOOD], id="a list"),
        pytest.param(GOOD | {"format": "x"}, id="another format"),
        pytest.param(GOOD | {"version": 2}, id="another version"),
        pytest.param(GOOD | {"session_id": {"$ne": ""}}, id="an operator as session id"),
        pytest.param(GOOD | {"session_id": "a b"}, id="a session id of another form"),
        pytest.param(GOOD | {"title": " "}, id="no title"),
        pytest.param(GOOD | {"turns": {}}, id="no turns"),
        pytest.param(with_turn(id=None), id="a turn without id"),
        pytest.param(with_turn(id="a/b"), id="a turn id of another form"),
        pytest.param(with_turn(status="done"), id="an unknown status"),
        pytest.param(with_turn(started_at="yesterday"), id="an unreadable time"),
        pytest.param(with_turn(record=[]), id="a record of another form"),
        pytest.param(with_turn(record={"passages": [{}]}), id="a passage without text"),
        pytest.param(with_turn(record={"degraded": ["x"]}), id="degraded parts as text"),
        pytest.param(with_turn(record={"timings": {"route": "slow"}}), id="times as words"),
        pytest.param(with_turn(record={"usage": [1]}), id="usage as a list"),
    ],
)
async def test_what_was_not_exported_is_not_imported(
    store: LocalChatHistory, data: object
) -> None:
    with pytest.raises(InputError):
        await import_session(store, data, user_id="bob")
    assert await store.sessions("bob", limit=9) == ()


async def test_the_smallest_export_can_be_imported(store: LocalChatHistory) -> None:
    session = await import_session(store, GOOD, user_id="bob")
    assert await store.turns(session) == (Turn(id="1", question="q", started_at=START),)
