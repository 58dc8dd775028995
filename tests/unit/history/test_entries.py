"""Turns in a form that every store takes."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from bson import decode, encode
from hypothesis import given
from hypothesis import strategies as st

from chatbot.domain import Session, Turn
from chatbot.history import rows
from chatbot.history.documents import (
    answer_document,
    question_document,
    question_id,
    read_entries,
)
from chatbot.history.entries import (
    RECORD_LIMIT,
    TEXT_LIMIT,
    TITLE_LENGTH,
    Entry,
    began_before,
    clean_text,
    clean_turn,
    microseconds,
    moment,
    next_seq,
    read_record,
    title_of,
    write_record,
)
from chatbot.history.sqlite import SqliteFile

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=10,
)
any_record = st.dictionaries(any_text, any_json, max_size=4)
any_moment = st.datetimes(timezones=st.just(UTC), min_value=datetime(1970, 1, 2))  # noqa: DTZ001 - hypothesis adds the zone
any_turn = st.builds(
    Turn,
    id=st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1).map(
        lambda text: text.replace("/", "-")[:200]
    ),
    question=any_text,
    answer=any_text,
    started_at=any_moment,
    status=st.sampled_from(["complete", "stopped", "failed"]),
    record=any_record,
)


def turn(**changes: Any) -> Turn:
    plain: dict[str, Any] = {"id": "1", "question": "q", "started_at": NOON}
    return Turn(**(plain | changes))


@given(any_text)
def test_clean_text_is_text_that_utf8_can_hold(text: str) -> None:
    clean = clean_text(text)
    clean.encode()
    assert clean_text(clean) == clean
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert clean == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("\ud83d\ude00", "😀", id="two halves of one character"),
        pytest.param("a\ud83d", "a\ufffd", id="first half alone"),
        pytest.param("\ude00b", "\ufffdb", id="second half alone"),
        pytest.param("\0\x1b{}", "\0\x1b{}", id="control characters and braces"),
    ],
)
def test_halves_of_characters_are_joined_or_replaced(text: str, clean: str) -> None:
    assert clean_text(text) == clean


@given(any_turn)
def test_any_turn_survives_mongodb(original: Turn) -> None:
    clean = clean_turn(original)
    entry = Entry(turn=clean, seq=next_seq(clean, 0))
    document = question_document("s", "u", entry, NOON) | {"_id": question_id("s", clean.id)}
    (read,) = read_entries([decode(encode(document))])
    assert read == entry
    answer = decode(encode(answer_document("s", "u", entry, NOON)))
    assert json.loads(answer["History"])["data"]["content"] == clean.answer


@given(any_turn)
async def test_any_turn_survives_sqlite(original: Turn) -> None:
    file = SqliteFile(":memory:")
    session = Session(session_id="s")
    clean = clean_turn(original)

    stored = await file.write(
        lambda connection: rows.put(
            connection, session, clean, now=NOON, life=timedelta(days=30)
        )
    )
    read = await file.read(lambda connection: rows.newest(connection, "s", limit=9))
    await file.close()
    assert read == [stored.entry]
    assert read[0].turn == clean


@given(any_record)
def test_cleaning_twice_is_cleaning_once(record: dict[str, Any]) -> None:
    once = clean_turn(turn(record=record))
    assert clean_turn(once) == once


@given(any_text)
def test_a_title_is_one_short_line(question: str) -> None:
    title = title_of(question)
    assert 0 < len(title) <= TITLE_LENGTH
    assert len(title.splitlines()) == 1
    title.encode()


@given(any_moment)
def test_a_moment_keeps_its_microseconds(when: datetime) -> None:
    assert moment(microseconds(when)) == when


@pytest.mark.parametrize(
    ("started_at", "last", "expected"),
    [
        pytest.param(NOON, 0, microseconds(NOON), id="first"),
        pytest.param(NOON, microseconds(NOON), microseconds(NOON) + 2, id="same moment"),
        pytest.param(NOON, microseconds(NOON) + 10, microseconds(NOON) + 12, id="clock behind"),
        pytest.param(moment(7), 0, 8, id="places are even"),
    ],
)
def test_a_place_is_the_moment_or_the_next_free_one(
    started_at: datetime, last: int, expected: int
) -> None:
    assert next_seq(turn(started_at=started_at), last) == expected


@pytest.mark.parametrize(
    ("cleared_after", "running"),
    [
        pytest.param(None, False, id="never cleared"),
        pytest.param(timedelta(seconds=30), True, id="cleared while it ran"),
        pytest.param(timedelta(), True, id="cleared as it began"),
        pytest.param(timedelta(seconds=-1), False, id="cleared before"),
        pytest.param(timedelta(days=1), False, id="cleared long after"),
    ],
)
def test_a_turn_that_ran_when_its_session_was_cleared(
    cleared_after: timedelta | None, *, running: bool
) -> None:
    cleared_at = None if cleared_after is None else NOON + cleared_after
    assert began_before(turn(), cleared_at) is running


def test_a_moment_without_a_zone_is_utc_and_another_zone_is_the_same_moment() -> None:
    naive = clean_turn(turn(started_at=NOON.replace(tzinfo=None)))
    beijing = clean_turn(turn(started_at=NOON.astimezone(timezone(timedelta(hours=8)))))
    assert naive.started_at == beijing.started_at == NOON


def test_a_text_beyond_all_measure_is_cut() -> None:
    clean = clean_turn(
        turn(question="瓦" * 10**6, answer="😀" * 10**6, record={"a": "😀" * 10**7})
    )
    assert len(clean.question) == len(clean.answer) == TEXT_LIMIT
    assert clean.question.endswith("…")
    entry = Entry(turn=clean, seq=2)
    assert len(encode(question_document("s", "u", entry, NOON))) < 16 * 1024 * 1024


def test_a_record_beyond_all_measure_loses_its_long_parts_only() -> None:
    record = {"intent": "general_chat", "passages": ["x" * RECORD_LIMIT], "usage": {"n": 1}}
    assert read_record(write_record(record)) == {
        "intent": "general_chat",
        "usage": {"n": 1},
        "left_out": ["passages"],
    }
