"""LangChain's classes and this history, each on what the other wrote."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
    message_to_dict,
)
from langchain_mongodb import MongoDBChatMessageHistory
from pymongo import MongoClient

from chatbot.domain import Session, SessionSummary
from chatbot.errors import HistoryError, InputError
from chatbot.history.adopting import MOST
from chatbot.history.archive import export_session
from chatbot.history.connection import Client, open_client
from chatbot.history.langchain import message_history, mongodb_message_history
from chatbot.history.local import LocalChatHistory
from chatbot.ratings import RatingFilter
from tests.integration.history.stores import mongo_history, turn
from tests.servers.mongod import Mongod

SESSION = Session(session_id="s")
ALICE = Session(session_id="s", user_id="alice")
DATABASE = "langchain"
NOW = datetime.now(UTC)

Theirs = Callable[..., MongoDBChatMessageHistory]


@pytest.fixture
async def client(mongod: Mongod) -> AsyncIterator[Client]:
    async with open_client(mongod.uri) as opened:
        await opened.drop_database(DATABASE)
        yield opened


@pytest.fixture
def theirs(mongod: Mongod, client: Client) -> Iterator[Theirs]:
    """Open LangChain's own class on a session."""
    with MongoClient[dict[str, Any]](mongod.uri) as sync_client:

        def opened(session_id: str = "s") -> MongoDBChatMessageHistory:
            return MongoDBChatMessageHistory(
                None, session_id, DATABASE, "chat_history", client=sync_client
            )

        yield opened


def texts(history: MongoDBChatMessageHistory) -> list[str]:
    return [f"{message.type}: {message.text}" for message in history.messages]


async def test_their_class_reads_our_sessions_in_order(mongod: Mongod, theirs: Theirs) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        await history.save(SESSION, turn("1", answer="", status="failed", second=1))
        await history.save(SESSION, turn("2", answer="第二", second=2))
        await history.save(SESSION, turn("3", answer="thr", status="stopped", second=3))
        await history.save(SESSION, turn("1", answer="first", second=1))
        await history.save(SESSION, turn("3", answer="third", second=3))
        await history.save(Session(session_id="s", user_id="bob"), turn("4"))
        await history._indexes.make()  # noqa: SLF001 - their class reads by our index
    expected = ["human: question 1", "ai: first", "human: question 2", "ai: 第二"]
    assert texts(theirs()) == [*expected, "human: question 3", "ai: third"]


async def test_a_collection_that_their_class_wrote_is_opened_in_place_and_continued(
    mongod: Mongod, theirs: Theirs
) -> None:
    written = theirs()
    for number in range(3):
        written.add_messages([HumanMessage(f"q{number}"), AIMessage(f"a{number}")])
    written.add_message(AIMessage([{"type": "text", "text": "a2, continued"}]))
    written.add_messages([SystemMessage("be kind"), HumanMessage("unanswered")])
    before = texts(written)
    async with mongo_history(mongod, DATABASE, owner="alice") as history:
        assert [t.question for t in (await history.load(ALICE, limit=2)).turns] == [
            "q2",
            "unanswered",
        ]
        loaded = (await history.load(ALICE, limit=9)).turns
        assert [(t.question, t.answer, t.status) for t in loaded] == [
            ("q0", "a0", "complete"),
            ("q1", "a1", "complete"),
            ("q2", "a2\n\na2, continued", "complete"),
            ("unanswered", "", "stopped"),
        ]
        assert await history.find(ALICE, loaded[0].id) == loaded[0]
        for other in (SESSION, Session(session_id="s", user_id="bob")):
            assert (await history.load(other, limit=9)).turns == ()
        await history.save(ALICE, turn("ours", started_at=datetime.now(UTC)))
        await history.save(ALICE, loaded[0])
        assert len(await history.turns(ALICE)) == 5
        assert len(await history.search("alice", "q1", limit=9)) == 1
    assert texts(written) == [*before, "human: question ours", "ai: answer ours"]
    # The class makes its own index when it is opened again; the order stays.
    assert texts(theirs()) == [*before, "human: question ours", "ai: answer ours"]


async def write(client: Client, when: datetime, message: HumanMessage | AIMessage) -> None:
    """Write as their class does at that moment."""
    number = ObjectId(ObjectId.from_datetime(when).binary[:4] + ObjectId().binary[4:])
    history = json.dumps(message_to_dict(message))
    row = {"_id": number, "SessionId": "s", "History": history}
    await client[DATABASE].chat_history.insert_one(row)


async def test_a_long_session_of_theirs_is_shown_before_it_is_adopted(
    mongod: Mongod, client: Client, theirs: Theirs
) -> None:
    messages = [kind(f"{n} 瓦尔登湖") for n in range(700) for kind in (HumanMessage, AIMessage)]
    rows = [
        {"SessionId": "s", "History": json.dumps(message_to_dict(each))} for each in messages
    ]
    theirs()  # which makes its index
    with MongoClient[dict[str, Any]](mongod.uri) as sync_client:
        collection = sync_client[DATABASE].chat_history
        collection.insert_many(rows)
        async with mongo_history(mongod, DATABASE) as history:
            left = len(rows)
            while left:
                try:
                    loaded = (await history.load(SESSION, limit=20)).turns
                except HistoryError:  # never late, and so not at all on a machine that is busy
                    continue
                assert [t.question for t in loaded] == [
                    f"{n} 瓦尔登湖" for n in range(680, 700)
                ]
                left = await client[DATABASE].chat_history.count_documents({"seq": None})
            assert len(await history.turns(SESSION)) == 700
    assert len(texts(theirs())) == 1400
    assert texts(theirs())[:3] == ["human: 0 瓦尔登湖", "ai: 0 瓦尔登湖", "human: 1 瓦尔登湖"]


async def test_several_processes_adopt_a_session_in_its_order(
    mongod: Mongod, client: Client, theirs: Theirs
) -> None:
    rows = [
        {"SessionId": "s", "History": json.dumps(message_to_dict(kind(str(number))))}
        for number in range(700)
        for kind in (HumanMessage, AIMessage)
    ]
    await client[DATABASE].chat_history.insert_many(rows)  # most of it in one second
    async with AsyncExitStack() as stack:
        for _ in range(4):
            history = await stack.enter_async_context(mongo_history(mongod, DATABASE))
            with suppress(HistoryError):  # a machine that is busy takes longer
                await history.load(SESSION, limit=1)
        exported = None
        while exported is None:
            with suppress(HistoryError):
                exported = await export_session(history, SESSION)
    questions = [each["question"] for each in exported["turns"]]
    assert questions == [str(number) for number in range(700)]
    expected = [f"{who}: {number}" for number in range(700) for who in ("human", "ai")]
    assert texts(theirs()) == expected


async def test_a_long_session_of_theirs_is_exported_as_a_whole_or_not_at_all(
    mongod: Mongod, client: Client
) -> None:
    rows = [
        {"SessionId": "s", "History": json.dumps(message_to_dict(HumanMessage(str(number))))}
        for number in range(MOST + 500)
    ]
    await client[DATABASE].chat_history.insert_many(rows)
    async with mongo_history(mongod, DATABASE) as history:
        exported = None
        while exported is None:
            with suppress(HistoryError):  # a machine that is busy takes longer
                exported = await export_session(history, SESSION)
        questions = [each["question"] for each in exported["turns"]]
        assert questions == [str(number) for number in range(MOST + 500)]


async def test_both_may_go_on_in_turns(mongod: Mongod, client: Client, theirs: Theirs) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        for minute, who in enumerate(["theirs", "ours", "theirs", "ours"]):
            when = NOW - timedelta(minutes=9 - minute)
            if who == "ours":
                await history.save(SESSION, turn(str(minute), started_at=when))
            else:
                await write(client, when, HumanMessage(f"question {minute}"))
                await write(client, when, AIMessage(f"answer {minute}"))
        turns = await history.turns(SESSION)
        assert [t.question for t in turns] == [f"question {minute}" for minute in range(4)]
        assert [t.answer for t in turns] == [f"answer {minute}" for minute in range(4)]
        await history.save(SESSION, turn("last", answer="", started_at=NOW))
    assert len(texts(theirs())) == 9
    assert texts(theirs())[::2] == [
        *(f"human: question {minute}" for minute in range(4)),
        "human: question last",
    ]


async def test_an_answer_that_they_write_after_its_question_was_read_completes_it(
    mongod: Mongod, theirs: Theirs
) -> None:
    written = theirs()
    async with mongo_history(mongod, DATABASE) as history:
        for number in range(2):
            written.add_message(HumanMessage(f"q{number}"))
            turns = await history.turns(SESSION)
            assert (turns[-1].question, turns[-1].status) == (f"q{number}", "stopped")
            written.add_message(AIMessage(f"a{number}"))
        turns = await history.turns(SESSION)
        assert [(t.question, t.answer, t.status) for t in turns] == [
            ("q0", "a0", "complete"),
            ("q1", "a1", "complete"),
        ]
        assert len(await history.search("anonymous", "a1", limit=9)) == 1
    assert texts(theirs()) == ["human: q0", "ai: a0", "human: q1", "ai: a1"]


async def test_a_stopped_turn_is_completed_also_before_what_they_wrote_is_adopted(
    mongod: Mongod, client: Client
) -> None:
    async with mongo_history(mongod, DATABASE) as history:
        begun = NOW - timedelta(minutes=9)
        await history.save(SESSION, turn("1", status="stopped", started_at=begun))
        for second in range(5):
            await write(client, NOW - timedelta(seconds=9 - second), HumanMessage("theirs"))
        await history.save(SESSION, turn("1", answer="whole", started_at=begun))
        turns = await history.turns(SESSION)
        assert [t.answer for t in turns] == ["whole", "", "", "", "", ""]


async def test_their_sessions_are_listed_without_being_opened(
    mongod: Mongod, theirs: Theirs
) -> None:
    for name in ("one", "two", "an id with spaces"):
        theirs(name).add_messages([HumanMessage(f"about {name}"), AIMessage("yes")])
    async with mongo_history(mongod, DATABASE) as history:
        assert await history.sessions("anonymous", limit=9) == ()
        listed: Sequence[SessionSummary] = ()
        async with asyncio.timeout(10):
            while sum(each.turns for each in listed) < 2:
                await asyncio.sleep(0.05)
                listed = await history.sessions("anonymous", limit=9)
        assert {(each.title, each.turns) for each in listed} == {
            ("about one", 1),
            ("about two", 1),
        }


async def test_their_session_is_cleared_as_a_whole(mongod: Mongod, theirs: Theirs) -> None:
    written = theirs()
    written.add_messages([HumanMessage("q"), AIMessage("a"), HumanMessage("q"), AIMessage("a")])
    async with mongo_history(mongod, DATABASE) as history:
        assert await history.clear(SESSION) == 2
        assert await history.turns(SESSION) == ()
    assert texts(written) == []


async def test_a_session_is_a_history_of_messages_for_langchain() -> None:
    async with LocalChatHistory(":memory:") as history:
        await history.save(SESSION, turn("1"))
        messages = message_history(history, SESSION)
        await messages.aadd_messages([HumanMessage("q"), SystemMessage("?"), AIMessage("a")])
        await messages.aadd_messages([HumanMessage("open")])
        await messages.aadd_messages([AIMessage("and answered")])
        assert [message.text for message in await messages.aget_messages()] == [
            *("question 1", "answer 1", "q", "a", "open", "and answered")
        ]
        assert {t.status for t in await history.turns(SESSION)} == {"complete"}
        with pytest.raises(InputError, match="no question"):
            await messages.aadd_messages([AIMessage("to nothing")])
        await messages.aclear()
        assert await messages.aget_messages() == []


async def test_a_history_of_messages_serves_other_threads() -> None:
    async with LocalChatHistory(":memory:") as history:
        messages = message_history(history, SESSION)
        await asyncio.to_thread(messages.add_messages, [HumanMessage("q"), AIMessage("a")])
        found = await asyncio.to_thread(lambda: messages.messages)
        assert [message.text for message in found] == ["q", "a"]
        with pytest.raises(InputError, match="aget_messages"):
            messages.clear()
        await asyncio.to_thread(messages.clear)
        assert await history.turns(SESSION) == ()


@pytest.mark.parametrize("session", [SESSION, ALICE], ids=["anonymous", "of a user"])
async def test_our_session_is_opened_as_langchains_class(
    mongod: Mongod, client: Client, session: Session
) -> None:
    async with mongo_history(mongod, DATABASE) as ours:
        await ours.save(session, turn("1", answer="one"))
        await ours.save(session, turn("2", answer="two"))

    def read() -> list[str]:
        history = mongodb_message_history(mongod.uri, session, database=DATABASE)
        try:
            return texts(history)
        finally:
            history.client.close()

    found = await asyncio.to_thread(read)
    assert [text.partition(":")[0] for text in found] == ["human", "ai"] * 2


async def test_a_turn_that_theirs_wrote_can_be_rated(mongod: Mongod, theirs: Theirs) -> None:
    theirs().add_messages([HumanMessage("Wer?"), AIMessage("梭罗")])
    async with mongo_history(mongod, DATABASE) as history:
        [found] = (await history.load(SESSION, limit=9)).turns
        feedback = {"thumb": "down", "comment": "错", "at": NOW.isoformat()}
        await history.save(SESSION, replace(found, record={"feedback": feedback}))
        [kept] = (await history.load(SESSION, limit=9)).turns
        assert kept == replace(found, record={"feedback": feedback})
        [rated] = await history.rated(RatingFilter(thumb="down"))
        assert (rated.turn.id, rated.session) == (found.id, SESSION)
