"""Counts what really happened: turns, intents, errors, degradations, latencies."""

import os
from collections import Counter as Tally
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from statistics import median, quantiles
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from chatbot.domain import Turn
from chatbot.errors import ChatbotError

# Names a folder where the workers of one server keep what they count. prometheus_client reads
# it when it is imported: it is set before they start.
SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
GUESSES = ("prefetch", "head_start")  # what a turn begins before it is known to be wanted
NEWEST = 1_000  # turns of which the times are told; all of them are in the histograms


class Statistics:
    """The counts of one process since it started. A turn is counted when it ends.

    One that takes the place of another is a turn like any other, and counted as a replacement
    too. Nothing is counted when a kept turn is given, sent or written again.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._turns = Counter(
            "chatbot_turns",
            "Turns that ended, by what became of them.",
            ["status", "intent"],
            registry=self._registry,
        )
        self._replacements = Counter(
            "chatbot_replacements",
            "Turns that take the place of another: asked again, or edited.",
            registry=self._registry,
        )
        self._errors = Counter(
            "chatbot_errors",
            "Turns that failed or were refused, by the code of the error.",
            ["code"],
            registry=self._registry,
        )
        self._degraded = Counter(
            "chatbot_degraded_turns",
            "Turns in which a part of the service did not work as it should.",
            ["part"],
            registry=self._registry,
        )
        self._guesses = Counter(
            "chatbot_guesses",
            "Searches and answers that were begun early, by whether they were of use.",
            ["kind", "use"],
            registry=self._registry,
        )
        self._tokens = Counter(
            "chatbot_tokens",
            "Tokens of the answers, as the models reported them.",
            ["direction"],
            registry=self._registry,
        )
        self._first_token = Histogram(
            "chatbot_first_token_seconds",
            "From the question to the first piece of the answer.",
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._duration = Histogram(
            "chatbot_turn_seconds",
            "From the question to the end of the turn.",
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._first_token_ms: deque[float] = deque(maxlen=NEWEST)
        self._total_ms: deque[float] = deque(maxlen=NEWEST)

    def count(self, turn: Turn) -> None:
        """Count a turn that ended."""
        record = turn.record
        self._turns.labels(turn.status, turn.intent or "none").inc()
        if record.get("replaces"):
            self._replacements.inc()
        if error := record.get("error"):
            self._errors.labels(error["code"]).inc()
        for part in {entry["part"] for entry in record.get("degraded", [])}:
            self._degraded.labels(part).inc()
        for kind, use in _guesses(record):
            self._guesses.labels(kind, use).inc()
        for direction in ("input", "output"):
            if used := (record.get("usage") or {}).get(f"{direction}_tokens"):
                self._tokens.labels(direction).inc(used)
        if (first := record.get("first_token_ms")) is not None:
            self._first_token.observe(first / 1000)
            self._first_token_ms.append(first)
        if (total := record.get("total_ms")) is not None:
            self._duration.observe(total / 1000)
            self._total_ms.append(total)

    def count_refused(self, error: ChatbotError) -> None:
        """Count a question that did not become a turn."""
        self._errors.labels(error.code).inc()

    def exposition(self) -> bytes:
        """Return the counts of all workers in the text format of Prometheus."""
        if not os.environ.get(SHARED_COUNTS):
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call] # it has no types
        return generate_latest(shared)

    def summary(self) -> Mapping[str, Any]:
        """Return the counts as plain JSON; times are those of the newest turns."""
        turns = self._by_label(self._turns, "status")
        return {
            "turns": sum(turns.values()),
            "statuses": turns,
            "intents": self._by_label(self._turns, "intent"),
            "replacements": sum(self._by_label(self._replacements).values()),
            "errors": self._by_label(self._errors, "code"),
            "degraded": self._by_label(self._degraded, "part"),
            "guesses": self._by_label(self._guesses, "kind", "use"),
            "tokens": self._by_label(self._tokens, "direction"),
            "first_token_ms": _spread(self._first_token_ms),
            "total_ms": _spread(self._total_ms),
        }

    @staticmethod
    def _by_label(counter: Counter, *labels: str) -> dict[str, int]:
        tally: Tally[str] = Tally()
        for metric in counter.collect():
            for sample in metric.samples:
                if sample.name.endswith("_total"):
                    tally[" ".join(sample.labels[label] for label in labels)] += int(
                        sample.value
                    )
        return dict(tally)


def summarised(turns: Sequence[Turn]) -> Mapping[str, Any]:
    """Return the counts of these turns as plain JSON, in the form of `Statistics.summary`."""
    records = [turn.record for turn in turns]
    usages = [record.get("usage") or {} for record in records]
    return {
        "turns": len(turns),
        "statuses": dict(Tally(turn.status for turn in turns)),
        "intents": dict(Tally(turn.intent or "none" for turn in turns)),
        "replacements": sum(1 for record in records if record.get("replaces")),
        "errors": dict(Tally(r["error"]["code"] for r in records if r.get("error"))),
        "degraded": dict(
            Tally(p for r in records for p in {e["part"] for e in r.get("degraded", [])})
        ),
        "guesses": dict(Tally(" ".join(guess) for r in records for guess in _guesses(r))),
        "tokens": {
            direction: sum(usage.get(f"{direction}_tokens") or 0 for usage in usages)
            for direction in ("input", "output")
        },
        "first_token_ms": _spread(
            [r["first_token_ms"] for r in records if "first_token_ms" in r]
        ),
        "total_ms": _spread([r["total_ms"] for r in records if "total_ms" in r]),
    }


def _guesses(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was begun early, each with `used`, `unused` or `failed`: asked for again."""
    return [(kind, record[kind]) for kind in GUESSES if kind in record]


def _spread(times: Collection[float]) -> dict[str, float | None]:
    if not times:
        return {"mean": None, "p50": None, "p95": None}
    mean = sum(times) / len(times)
    # No percentile is beyond what was measured.
    every = quantiles(times, n=20, method="inclusive") if len(times) > 1 else [*times] * 20
    return {"mean": round(mean, 1), "p50": round(median(times), 1), "p95": round(every[-1], 1)}
