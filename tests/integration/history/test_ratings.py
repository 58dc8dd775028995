"""What readers think of answers, across users, in every store."""

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chatbot.domain import Session, Thumb
from chatbot.errors import InputError
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.ports import SessionStore
from chatbot.ratings import RatedTurn, RatingCursor, RatingFilter
from tests.integration.history.stores import (
    active_at,
    mongo_history,
    turn,
)
from tests.servers.mongod import Mongod

ALICE = Session(session_id="s", user_id="alice")
BOB = Session(session_id="s", user_id="bob")
NOW = datetime(2026, 5, 5, 12, 0, 0, 250, tzinfo=UTC)


def feedback(thumb: Thumb | None, minute: int, comment: str | None = None) -> dict[str, Any]:
    at = (NOW + timedelta(minutes=minute)).isoformat()
    return {"thumb": thumb, "comment": comment, "at": at}


async def rate(
    history: SessionStore, session: Session, name: str, thumb: Thumb | None, minute: int
) -> None:
    """Ask and rate afterwards, as people do."""
    asked = turn(name)
    await history.save(session, asked)
    await history.save(
        session, replace(asked, record={"feedback": feedback(thumb, minute, "说明")})
    )


def names(rated: Sequence[RatedTurn]) -> list[str]:
    return [f"{each.session.user_id} {each.turn.id}" for each in rated]


async def test_the_latest_rated_come_first_whoever_rated_them(history: SessionStore) -> None:
    await rate(history, ALICE, "a", "down", 3)
    await rate(history, BOB, "b", "down", 5)
    await rate(history, BOB, "c", "up", 4)
    await history.save(BOB, turn("unrated"))
    assert names(await history.rated(RatingFilter())) == ["bob b", "bob c", "alice a"]
    assert names(await history.rated(RatingFilter(thumb="up"))) == ["bob c"]
    bad = await history.rated(RatingFilter(thumb="down"))
    assert names(bad) == ["bob b", "alice a"]
    assert bad[0].rated_at == NOW + timedelta(minutes=5)
    assert bad[0].title == "question b"
    assert bad[0].turn.question == "question b"
    assert bad[0].turn.record["feedback"]["comment"] == "说明"
    recent = RatingFilter(since=NOW + timedelta(minutes=4))
    assert names(await history.rated(recent)) == ["bob b", "bob c"]


async def test_the_newest_rating_counts_and_one_taken_back_does_not(
    history: SessionStore,
) -> None:
    await rate(history, ALICE, "a", "down", 1)
    await rate(history, ALICE, "a", "up", 2)
    assert await history.rated(RatingFilter(thumb="down")) == ()
    assert names(await history.rated(RatingFilter(thumb="up"))) == ["alice a"]
    await rate(history, ALICE, "a", None, 3)
    assert await history.rated(RatingFilter()) == ()


async def test_pages_follow_each_other_without_gap(history: SessionStore) -> None:
    for number in range(7):  # some at the same moment
        await rate(history, ALICE, f"t{number}", "down", number // 3)
    found: list[str] = []
    before = None
    while page := await history.rated(RatingFilter(limit=2, before=before)):
        found += names(page)
        before = RatingCursor.parse(page[-1].cursor)
    expected = ["t6", "t3", "t4", "t5", "t0", "t1", "t2"]
    assert found == [f"alice {name}" for name in expected]
    assert await history.rated(RatingFilter(limit=0)) == ()


@pytest.mark.parametrize("end", ["cleared", "forgotten", "expired"])
async def test_a_rating_goes_with_its_session(history: SessionStore, end: str) -> None:
    await rate(history, ALICE, "a", "down", 1)
    await rate(history, BOB, "b", "down", 1)
    if end == "cleared":
        await history.clear(ALICE)
    elif end == "forgotten":
        await history.forget_user("alice")
    else:
        await active_at(history, "s", datetime(2020, 1, 1, tzinfo=UTC))
    assert names(await history.rated(RatingFilter())) == ["bob b"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("down", id="no object"),
        pytest.param({"thumb": "sideways", "at": "2026-01-01"}, id="no thumb"),
        pytest.param({"thumb": ["down"]}, id="a list"),
        pytest.param(None, id="nothing"),
    ],
)
async def test_a_record_from_elsewhere_is_not_trusted(
    history: SessionStore, given: object
) -> None:
    await history.restore(ALICE, "imported", [turn("a", feedback=given)])
    assert await history.rated(RatingFilter()) == ()


async def test_an_imported_rating_without_a_time_counts_from_its_turn(
    history: SessionStore,
) -> None:
    imported = turn("a", feedback={"thumb": "down", "at": "yesterday"})
    await history.restore(ALICE, "imported", [imported])
    (found,) = await history.rated(RatingFilter(thumb="down"))
    assert found.rated_at == imported.started_at


@pytest.mark.parametrize("text", ["", "x:1", "12", "1:a b", "9" * 18 + ":a"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        RatingCursor.parse(text)


async def test_ratings_of_an_earlier_version_are_found_in_mongodb(mongod: Mongod) -> None:
    database = "ratings"
    async with open_client(mongod.uri) as client:
        await client.drop_database(database)
        async with mongo_history(mongod, database) as history:
            await rate(history, ALICE, "a", "down", 1)
        earlier = {"$set": {"version": 2}}
        without = {"$unset": {"thumb": "", "rated_at": ""}}
        await client[database].chat_history.update_many({}, earlier | without)
        await client[database].chat_history_sessions.update_many({}, earlier)
        async with mongo_history(mongod, database) as history:
            assert await history.rated(RatingFilter()) == ()
            async with asyncio.timeout(20):
                while not (found := await history.rated(RatingFilter(thumb="down"))):  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.02)
        assert names(found) == ["alice a"]
        plan = await client[database].command(
            "explain",
            {
                "find": "chat_history",
                "filter": {"rated_at": {"$gt": 0, "$gte": 0}, "thumb": "down"},
                "sort": {"rated_at": -1, "turn": 1},
            },
        )
        assert "rated_at_-1_turn_1" in str(plan["queryPlanner"]["winningPlan"])


async def test_ratings_of_an_earlier_version_are_found_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite3"
    async with LocalChatHistory(path) as history:
        await rate(history, ALICE, "a", "down", 1)
        await history.save(ALICE, turn("b"))
    with sqlite3.connect(path) as connection:
        connection.execute("DROP INDEX turns_by_rating")
        connection.execute("ALTER TABLE turns DROP COLUMN thumb")
        connection.execute("ALTER TABLE turns DROP COLUMN rated_at")
        connection.execute("PRAGMA user_version = 4")
    connection.close()
    async with LocalChatHistory(path) as history:
        assert names(await history.rated(RatingFilter(thumb="down"))) == ["alice a"]
        assert [each.id for each in await history.turns(ALICE)] == ["a", "b"]
        assert len(await history.search("alice", "question", limit=9)) == 2
