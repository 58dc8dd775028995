"""What every history does, whatever it keeps the turns in."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from chatbot.domain import Session, SessionCursor, SessionSummary, Turn, TurnStatus
from chatbot.errors import InputError
from chatbot.ports import SessionStore
from tests.integration.history.stores import (
    START,
    active_at,
    turn,
)

SESSION = Session(session_id="s")
ALICE = Session(session_id="s", user_id="alice")


async def ids(history: SessionStore, session: Session = SESSION, limit: int = 100) -> list[str]:
    return [turn.id for turn in (await history.load(session, limit=limit)).turns]


async def test_a_turn_comes_back_as_it_was(history: SessionStore) -> None:
    saved = Turn(
        id="7b1f-中文",
        question="瓦尔登湖在哪里? {braces} \0 \u2028 🙂",
        answer="In Concord.\n\n在马萨诸塞州。",
        started_at=START,
        status="complete",
        record={
            "intent": "knowledge_base",
            "passages": [{"text": "…", "score": 0.25, "$ne": None, "a.b": [1, 2**70, True]}],
            "usage": {},
        },
    )
    await history.save(SESSION, saved)
    assert (await history.load(SESSION, limit=1)).turns == (saved,)
    assert await history.find(SESSION, saved.id) == saved


async def test_an_unknown_session_is_empty(history: SessionStore) -> None:
    assert await ids(history) == []
    assert await history.find(SESSION, "1") is None
    assert await history.clear(SESSION) == 0
    assert await history.sessions("anonymous", limit=10) == ()


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(2, ["3", "4"], id="some"),
        pytest.param(5, ["0", "1", "2", "3", "4"], id="all"),
        pytest.param(9, ["0", "1", "2", "3", "4"], id="more than there are"),
    ],
)
async def test_the_newest_turns_come_oldest_first(
    history: SessionStore, limit: int, expected: list[str]
) -> None:
    for number in range(5):
        await history.save(SESSION, turn(str(number), second=number))
    assert await ids(history, limit=limit) == expected


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param([0, 0, 0], id="started at the same moment"),
        pytest.param([9, 5, 1], id="a clock that runs backwards"),
        pytest.param([0.000001, 0.000002, 0.000003], id="a microsecond apart"),
    ],
)
async def test_a_turn_is_kept_at_the_end(history: SessionStore, seconds: list[float]) -> None:
    for name, second in zip("abc", seconds, strict=True):
        await history.save(SESSION, turn(name, second=second))
    assert await ids(history) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("first", "second", "answers", "replaced"),
    [
        pytest.param("stopped", "complete", ("half", "whole"), True, id="stopped, complete"),
        pytest.param("failed", "complete", ("", "whole"), True, id="failed, complete"),
        pytest.param("stopped", "complete", ("half", ""), True, id="stopped, without words"),
        pytest.param("complete", "complete", ("one", "two"), False, id="complete twice"),
        pytest.param("complete", "stopped", ("whole", "half"), False, id="complete, stopped"),
        pytest.param("stopped", "failed", ("half", ""), False, id="stopped, failed"),
        pytest.param("failed", "stopped", ("", "half"), False, id="failed, stopped"),
        pytest.param("stopped", "stopped", ("ha", "half"), True, id="stopped, with more words"),
        pytest.param("stopped", "failed", ("", "half"), True, id="stopped, failed with more"),
        pytest.param("stopped", "stopped", ("half", "ha"), False, id="stopped, with fewer"),
    ],
)
async def test_saving_again_replaces_only_an_unfinished_turn_by_more_of_it(
    history: SessionStore,
    first: TurnStatus,
    second: TurnStatus,
    answers: tuple[str, str],
    *,
    replaced: bool,
) -> None:
    before = replace(turn("a"), status=first, answer=answers[0], record={"model": "one"})
    after = replace(turn("a"), status=second, answer=answers[1], record={"model": "two"})
    await history.save(SESSION, before)
    await history.save(SESSION, turn("b", second=1))
    await history.save(SESSION, after)
    loaded = (await history.load(SESSION, limit=9)).turns
    assert loaded == (after if replaced else before, turn("b", second=1))


async def test_a_turn_may_get_a_summary_once(history: SessionStore) -> None:
    done = turn("a")
    await history.save(SESSION, done)
    await history.save(SESSION, turn("b", second=1))
    for text in ("first", "second"):
        record = {**done.record, "summary": {"text": text, "until": "x"}}
        await history.save(SESSION, replace(done, record=record))
    await history.save(SESSION, done)
    kept = (await history.load(SESSION, limit=9)).turns
    assert [each.record.get("summary", {}).get("text") for each in kept] == ["first", None]
    assert replace(kept[0], record=done.record) == done


async def test_the_newest_rating_of_a_turn_counts(history: SessionStore) -> None:
    done = turn("a")
    await history.save(SESSION, done)
    await history.save(SESSION, turn("b", second=1))
    for thumb, second in (("down", 1), ("up", 3), ("down", 2)):
        feedback = {"thumb": thumb, "comment": "好", "at": f"2026-01-01T00:00:0{second}"}
        await history.save(SESSION, replace(done, record={**done.record, "feedback": feedback}))
    kept = (await history.load(SESSION, limit=9)).turns
    assert [each.record.get("feedback", {}).get("thumb") for each in kept] == ["up", None]
    assert replace(kept[0], record=done.record) == done


async def test_sessions_never_see_each_other(history: SessionStore) -> None:
    everyone = [SESSION, ALICE, Session(session_id="s", user_id="bob"), Session(session_id="t")]
    for number, session in enumerate(everyone):
        await history.save(session, turn("same-id", answer=str(number)))
    for number, session in enumerate(everyone):
        (loaded,) = (await history.load(session, limit=9)).turns
        assert loaded.answer == str(number)
    assert await history.clear(ALICE) == 1
    assert [len(await ids(history, session)) for session in everyone] == [1, 0, 1, 1]
    assert await history.find(ALICE, "same-id") is None


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        pytest.param(("a", "b:c"), ("a:b", "c"), id="colon"),
        pytest.param(("a", "b%3Ac"), ("a", "b:c"), id="escaped colon"),
        pytest.param(("a:b:0", "c"), ("a", "b:0:c"), id="place"),
        pytest.param(("$ne", "$where"), ("a.b", "$set"), id="operators"),
    ],
)
async def test_ids_are_never_confused(
    history: SessionStore, mine: tuple[str, str], other: tuple[str, str]
) -> None:
    for session_id, turn_id in (mine, other):
        await history.save(Session(session_id=session_id), turn(turn_id))
    for session_id, turn_id in (mine, other):
        found = await history.find(Session(session_id=session_id), turn_id)
        assert found is not None
        assert found.id == turn_id


@pytest.mark.parametrize("turn_id", ["", "a b", "a\n", "a/b", "x" * 201, "\ud800"])
async def test_a_turn_id_of_another_form_is_refused(
    history: SessionStore, turn_id: str
) -> None:
    with pytest.raises(InputError, match="turn id"):
        await history.save(SESSION, turn(turn_id))
    with pytest.raises(InputError, match="turn id"):
        await history.find(SESSION, turn_id)


async def test_a_cleared_session_begins_anew(history: SessionStore) -> None:
    for number in range(3):
        await history.save(SESSION, turn(str(number), second=number))
    assert await history.clear(SESSION) == 3
    assert await ids(history) == []
    assert await history.sessions("anonymous", limit=9) == ()
    await history.save(SESSION, turn("again"))
    assert await ids(history) == ["again"]
    (summary,) = await history.sessions("anonymous", limit=9)
    assert (summary.title, summary.turns) == ("question again", 1)


async def test_a_turn_that_ran_while_its_session_was_cleared_is_not_kept(
    history: SessionStore,
) -> None:
    await history.save(SESSION, turn("before", started_at=datetime.now(UTC)))
    running = turn("running", started_at=datetime.now(UTC))
    await history.clear(SESSION)
    await history.save(SESSION, running)
    assert await ids(history) == []
    assert await history.sessions("anonymous", limit=9) == ()
    after = turn("after", started_at=datetime.now(UTC) + timedelta(milliseconds=5))
    await history.save(SESSION, after)
    assert await ids(history) == ["after"]


async def test_a_first_turn_that_ran_while_its_user_was_forgotten_is_not_kept(
    history: SessionStore,
) -> None:
    await history.save(Session(session_id="other", user_id="alice"), turn("before"))
    running = turn("running", started_at=datetime.now(UTC))
    bobs = turn("bobs", started_at=datetime.now(UTC))
    await history.forget_user("alice")
    await history.save(ALICE, running)
    await history.save(Session(session_id="s", user_id="bob"), bobs)
    assert await ids(history, ALICE) == []
    assert await history.sessions("alice", limit=9) == ()
    assert await history.search("alice", "question", limit=9) == ()
    assert await ids(history, Session(session_id="s", user_id="bob")) == ["bobs"]
    after = turn("after", started_at=datetime.now(UTC) + timedelta(milliseconds=5))
    await history.save(ALICE, after)
    assert await ids(history, ALICE) == ["after"]
    (summary,) = await history.sessions("alice", limit=9)
    assert (summary.title, summary.turns) == ("question after", 1)


async def test_a_session_can_be_restored_after_its_user_was_forgotten(
    history: SessionStore,
) -> None:
    turns = [turn("old"), turn("new", started_at=datetime.now(UTC))]
    await history.forget_user("alice")
    await history.restore(ALICE, "back again", turns)
    assert list(await history.turns(ALICE)) == turns
    await history.forget_user("alice")
    await history.save(ALICE, turn("late", started_at=turns[1].started_at))
    assert await ids(history, ALICE) == []


async def test_a_session_with_the_name_of_all_is_one_like_any_other(
    history: SessionStore,
) -> None:
    star = Session(session_id="*", user_id="alice")
    for session in (star, ALICE):
        await history.save(session, turn("1"))
    assert await history.clear(star) == 1
    assert await ids(history, ALICE) == ["1"]
    await history.save(star, turn("2"))
    assert await history.forget_user("alice") == 2
    assert await history.clear(star) == 0
    assert await ids(history, ALICE) == []


async def test_sessions_are_listed_newest_first(history: SessionStore) -> None:
    for name in ("first", "second", "third"):
        session = Session(session_id=name, user_id="alice")
        await history.save(session, replace(turn("1"), question=f"  {name}\n  question " * 9))
        await asyncio.sleep(0.002)  # activity is kept by the millisecond
    await history.save(Session(session_id="first", user_id="alice"), turn("2"))
    await history.save(SESSION, turn("1"))
    listed = await history.sessions("alice", limit=2)
    assert [summary.session_id for summary in listed] == ["first", "third"]
    assert [summary.turns for summary in listed] == [2, 1]
    assert listed[0].title.startswith("first question first question")
    assert len(listed[0].title) <= 60
    assert listed[0].last_active - datetime.now(UTC) < timedelta(seconds=5)


async def test_turns_of_many_sessions_at_once_all_arrive(history: SessionStore) -> None:
    sessions = [Session(session_id=f"s{number}") for number in range(10)]

    async def talk(session: Session) -> None:
        for number in range(5):
            await history.save(session, turn(str(number), second=number))

    await asyncio.gather(*(talk(session) for session in sessions))
    for session in sessions:
        assert await ids(history, session) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("page", [1, 2, 3])
@pytest.mark.parametrize("moments", [1, 2, 9])
async def test_pages_skip_and_repeat_no_session(
    history: SessionStore, page: int, moments: int
) -> None:
    names = ["a", "瓦", "b", "c:d", "ä"]
    day = datetime.now(UTC).replace(microsecond=123_000)
    for number, name in enumerate(names):
        await history.save(Session(session_id=name, user_id="alice"), turn("1"))
        await active_at(history, name, day - timedelta(seconds=number % moments))
    await history.save(Session(session_id="b", user_id="bob"), turn("1"))
    found: list[str] = []
    before: SessionCursor | None = None
    while listed := await history.sessions("alice", limit=page, before=before):
        assert len(listed) <= page
        found += [summary.session_id for summary in listed]
        before = SessionCursor.parse(listed[-1].cursor)
    by_id = sorted(enumerate(names), key=lambda each: each[1].encode())
    by_time = sorted(by_id, key=lambda each: each[0] % moments)
    assert found == [name for _, name in by_time]


@pytest.mark.parametrize(
    ("active", "second", "third"),
    [
        pytest.param("a", ["d", "b"], [], id="one that is still to come"),
        pytest.param("d", ["a", "b"], [], id="one of the same moment as the cursor's"),
        pytest.param("c", ["d", "a"], ["b"], id="the one that the cursor names"),
        pytest.param("e", ["d", "a"], ["b"], id="one that was shown"),
    ],
)
async def test_a_session_that_comes_to_the_front_meanwhile_shifts_no_page(
    history: SessionStore, active: str, second: list[str], third: list[str]
) -> None:
    day = datetime.now(UTC) - timedelta(hours=1)
    for number, name in enumerate("abcde"):
        await history.save(Session(session_id=name, user_id="alice"), turn("1"))
        await active_at(history, name, day + timedelta(seconds=number // 2 * 2))

    async def page(before: SessionCursor | None) -> Sequence[SessionSummary]:
        return await history.sessions("alice", limit=2, before=before)

    first = await page(None)
    assert [each.session_id for each in first] == ["e", "c"]
    cursor = SessionCursor.parse(first[-1].cursor)
    await history.save(Session(session_id=active, user_id="alice"), turn("2", second=1))
    then = await page(cursor)
    assert [each.session_id for each in then] == second
    last = await page(SessionCursor.parse(then[-1].cursor))
    assert [each.session_id for each in last] == third
    assert (await page(None))[0].session_id == active


async def test_a_session_has_a_summary_and_all_its_turns(history: SessionStore) -> None:
    assert await history.summary(ALICE) is None
    assert await history.turns(ALICE) == ()
    turns = [turn(str(number), second=number) for number in range(3)]
    for each in turns:
        await history.save(ALICE, each)
    summary = await history.summary(ALICE)
    assert summary is not None
    assert (summary.session_id, summary.title, summary.turns) == ("s", "question 0", 3)
    assert list(await history.turns(ALICE)) == turns
    assert await history.summary(SESSION) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("风景", ["walden"], id="a Chinese word inside a sentence"),
        pytest.param("瓦尔登湖", ["walden"], id="a Chinese name"),
        pytest.param("湖", ["walden"], id="one Chinese character"),
        pytest.param("benefit", ["benefits"], id="another form of the word"),
        pytest.param("DENTAL Insurance", ["benefits"], id="several words in other case"),
        pytest.param("cooking", ["walden"], id="a word of the answer"),
        pytest.param("dental 风景", [], id="words of two turns"),
        pytest.param("$where {}", [], id="operators"),
        pytest.param("", [], id="nothing"),
        pytest.param("？！", [], id="punctuation alone"),
        pytest.param("\ud800", [], id="half a character"),
        pytest.param("question", ["benefits", "walden"], id="newest first"),
    ],
)
async def test_turns_are_found_by_their_words(
    history: SessionStore, text: str, found: list[str]
) -> None:
    walden = "question: 瓦尔登湖的风景怎么样?"
    about = replace(turn("walden", answer="Cooking"), question=walden)
    benefits = replace(
        turn("benefits", second=1), question="Question: which benefits? Dental insurance?"
    )
    await history.save(ALICE, about)
    await history.save(Session(session_id="t", user_id="alice"), benefits)
    await history.save(Session(session_id="s", user_id="bob"), about)
    cleared = Session(session_id="gone", user_id="alice")
    await history.save(cleared, about)
    await history.clear(cleared)
    matches = await history.search("alice", text, limit=9)
    assert [match.turn.id for match in matches] == found
    assert len(await history.search("alice", text, limit=1)) == min(len(found), 1)
    if found == ["walden"]:
        assert (matches[0].session_id, matches[0].turn) == ("s", about)
        assert matches[0].title == walden


async def test_a_replaced_turn_is_found_by_its_new_words_alone(history: SessionStore) -> None:
    await history.save(ALICE, turn("1", answer="half", status="stopped"))
    await history.save(ALICE, turn("1", answer="whole"))
    assert len(await history.search("alice", "whole", limit=9)) == 1
    assert len(await history.search("alice", "half", limit=9)) == 0


async def test_a_session_can_be_renamed(history: SessionStore) -> None:
    assert not await history.rename(ALICE, "nothing there")
    await history.save(ALICE, turn("1"))
    assert await history.rename(ALICE, "  Trip to\n the 湖 ")
    assert not await history.rename(SESSION, "of somebody else")
    await history.save(ALICE, turn("2", second=1))
    await history.load(ALICE, limit=9)
    (summary,) = await history.sessions("alice", limit=9)
    assert summary.title == "Trip to the 湖"
    with pytest.raises(InputError, match="title"):
        await history.rename(ALICE, " \n ")
    await history.clear(ALICE)
    assert not await history.rename(ALICE, "cleared")


async def test_a_session_can_be_restored_after_it_was_cleared(history: SessionStore) -> None:
    turns = [turn(str(n), started_at=datetime.now(UTC)) for n in range(250)]
    await history.save(ALICE, turns[0])
    await history.clear(ALICE)
    await history.restore(ALICE, "back again", turns)
    await history.restore(ALICE, "back again", turns)
    assert list(await history.turns(ALICE)) == turns
    summary = await history.summary(ALICE)
    assert summary is not None
    assert (summary.title, summary.turns) == ("back again", 250)


async def test_a_user_can_be_forgotten(history: SessionStore) -> None:
    for name in ("s", "t"):
        await history.save(Session(session_id=name, user_id="alice"), turn("1"))
        await history.save(Session(session_id=name, user_id="bob"), turn("1"))
    assert await history.forget_user("alice") == 2
    assert await history.sessions("alice", limit=9) == ()
    assert await ids(history, ALICE) == []
    assert await history.search("alice", "question", limit=9) == ()
    assert len(await history.sessions("bob", limit=9)) == 2
    assert await history.forget_user("alice") == 0
    await history.save(ALICE, turn("2"))
    assert await ids(history, ALICE) == ["2"]
