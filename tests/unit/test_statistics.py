from datetime import UTC, datetime
from typing import Any

from chatbot.domain import Turn, TurnStatus
from chatbot.errors import BusyError
from chatbot.statistics import Statistics, summarised


def turn(status: TurnStatus = "complete", **record: Any) -> Turn:
    return Turn(
        id="1",
        question="q",
        answer="a",
        status=status,
        started_at=datetime.now(UTC),
        record=record,
    )


TURNS = [
    turn(
        intent="knowledge_base",
        usage={"input_tokens": 10, "output_tokens": 5},
        first_token_ms=100.0,
        total_ms=1000.0,
    ),
    turn(
        intent="knowledge_base",
        usage={"input_tokens": 20, "output_tokens": None},
        degraded=[{"part": "history", "reason": "a"}, {"part": "history", "reason": "b"}],
        first_token_ms=300.0,
        total_ms=2000.0,
    ),
    turn("failed", error={"code": "model_timeout"}, total_ms=3000.0),
]


def test_a_process_counts_what_happened() -> None:
    statistics = Statistics()
    for each in TURNS:
        statistics.count(each)
    statistics.count_refused(BusyError("busy"))
    summary = statistics.summary()
    assert summary == {
        "turns": 3,
        "statuses": {"complete": 2, "failed": 1},
        "intents": {"knowledge_base": 2, "none": 1},
        "errors": {"model_timeout": 1, "busy": 1},
        "degraded": {"history": 1},
        "tokens": {"input": 30, "output": 5},
        "first_token_ms": {"mean": 200.0},
        "total_ms": {"mean": 2000.0},
    }
    text = statistics.exposition().decode()
    assert 'chatbot_turns_total{intent="knowledge_base",status="complete"} 2.0' in text
    assert "chatbot_first_token_seconds_count 2.0" in text


def test_a_session_is_counted_from_its_turns() -> None:
    summary = summarised(TURNS)
    assert summary["turns"] == 3
    assert summary["degraded"] == {"history": 1}
    assert summary["tokens"] == {"input": 30, "output": 5}
    assert summary["total_ms"]["median"] == 2000.0
    assert summary["first_token_ms"]["mean"] == 200.0


def test_nothing_happened() -> None:
    assert Statistics().summary()["first_token_ms"] == {"mean": None}
    assert summarised([])["total_ms"] == {"mean": None, "median": None, "p95": None}


def test_two_bots_count_apart() -> None:
    one, other = Statistics(), Statistics()
    one.count(TURNS[0])
    assert other.summary()["turns"] == 0
