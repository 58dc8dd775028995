from datetime import UTC, datetime
from typing import Any

from chatbot.domain import Turn, TurnStatus
from chatbot.errors import BusyError
from chatbot.statistics import NEWEST, Statistics, summarised


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
        prefetch="used",
        head_start="unused",
        first_token_ms=100.0,
        total_ms=1000.0,
    ),
    turn(
        intent="knowledge_base",
        usage={"input_tokens": 20, "output_tokens": None},
        prefetch="used",
        degraded=[{"part": "history", "reason": "a"}, {"part": "history", "reason": "b"}],
        first_token_ms=300.0,
        total_ms=2000.0,
    ),
    turn("failed", error={"code": "model_timeout"}, total_ms=3000.0),
    turn("stopped", intent="general_chat", replaces="1", total_ms=2000.0),
]
SUMMARY = {
    "turns": 4,
    "statuses": {"complete": 2, "failed": 1, "stopped": 1},
    "intents": {"knowledge_base": 2, "none": 1, "general_chat": 1},
    "replacements": 1,
    "errors": {"model_timeout": 1},
    "degraded": {"history": 1},
    "guesses": {"prefetch used": 2, "head_start unused": 1},
    "tokens": {"input": 30, "output": 5},
    "first_token_ms": {"mean": 200.0, "p50": 200.0, "p95": 290.0},
    "total_ms": {"mean": 2000.0, "p50": 2000.0, "p95": 2850.0},
}


def test_a_process_counts_what_happened() -> None:
    statistics = Statistics()
    for each in TURNS:
        statistics.count(each)
    statistics.count_refused(BusyError("busy"))
    assert statistics.summary() == {**SUMMARY, "errors": {"model_timeout": 1, "busy": 1}}
    lines = statistics.exposition().decode().splitlines()
    assert {
        'chatbot_turns_total{intent="knowledge_base",status="complete"} 2.0',
        'chatbot_turns_total{intent="general_chat",status="stopped"} 1.0',
        'chatbot_turns_total{intent="none",status="failed"} 1.0',
        'chatbot_guesses_total{kind="prefetch",use="used"} 2.0',
        "chatbot_replacements_total 1.0",
        'chatbot_errors_total{code="busy"} 1.0',
        'chatbot_degraded_turns_total{part="history"} 1.0',
        'chatbot_tokens_total{direction="input"} 30.0',
        'chatbot_first_token_seconds_bucket{le="0.1"} 1.0',
        'chatbot_first_token_seconds_bucket{le="0.5"} 2.0',
        "chatbot_first_token_seconds_count 2.0",
        'chatbot_turn_seconds_bucket{le="2.0"} 3.0',
        "chatbot_turn_seconds_count 4.0",
    } <= set(lines)


def test_a_session_is_counted_from_its_turns() -> None:
    assert summarised(TURNS) == SUMMARY


def test_nothing_happened() -> None:
    nothing = summarised([])
    assert nothing["total_ms"] == {"mean": None, "p50": None, "p95": None}
    assert Statistics().summary() == {**nothing, "tokens": {}}


def test_one_time_is_every_percentile() -> None:
    alone = summarised(TURNS[:1])
    assert alone["total_ms"] == {"mean": 1000.0, "p50": 1000.0, "p95": 1000.0}


def test_the_times_of_the_newest_turns_are_told() -> None:
    statistics = Statistics()
    for number in range(NEWEST + 500):
        statistics.count(turn(total_ms=9000.0 if number < 500 else 100.0))
    assert statistics.summary()["turns"] == NEWEST + 500
    assert statistics.summary()["total_ms"] == {"mean": 100.0, "p50": 100.0, "p95": 100.0}


def test_two_bots_count_apart() -> None:
    one, other = Statistics(), Statistics()
    one.count(TURNS[0])
    assert other.summary()["turns"] == 0
