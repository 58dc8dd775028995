"""The tables, targets and charts of whole turns, from what `turns` measured."""

from collections.abc import Mapping
from statistics import mean, median
from typing import Any

from benchmarks.model_server import ANSWER_TOKENS, FIRST_TOKEN, GAP, SUBJECT
from benchmarks.ragflow_server import RETRIEVAL_SECONDS
from benchmarks.report import Chart, Report, Table, Target
from benchmarks.steps import SECONDS
from benchmarks.systems import OURS

KINDS = {
    "first turn": f"How long does the warranty of the {SUBJECT} pump last?",
    "follow-up": "And in months?",
    "small talk": "hello, how are you?",
}
LIMITS = {"first turn": 660, "follow-up": 1100, "small talk": 630}  # ms to the first token
CPU_LIMIT = 20  # ms a turn, on a machine where that of `BY_HAND` takes `CPU_BY_HAND`
BY_HAND = "httpx by hand"
CPU_BY_HAND = 8.3
CROWDS = (50, 200)
RATE = 40  # turns a second of the largest crowd
STREAMS = 200  # open at once
STARVED = 2.0  # times as long as the session in the middle

Samples = dict[str, dict[str, list[dict[str, float]]]]  # of each system, of each kind of turn
Crowds = dict[str, dict[int, list[dict[str, Any]]]]


def report(
    samples: Samples, found: Crowds, memory: Mapping[str, Mapping[str, float]]
) -> Report:
    """Put the figures together."""
    return Report(
        tables=[
            times_table(samples),
            cost_table(samples),
            crowd_table(found),
            memory_table(memory),
        ],
        targets=targets(samples, found) if OURS in samples else [],
        charts=charts(samples, found),
    )


def times_table(samples: Samples) -> Table:
    """Return first token and whole turn."""
    rounds = len(next(iter(samples.values()))["first turn"])
    columns = ["", *(f"{kind}, first token" for kind in KINDS), *(f"{k}, whole" for k in KINDS)]
    rows = [
        [name, *(_ms(of[kind], "first") for kind in KINDS)]
        + [_ms(of[kind], "whole") for kind in KINDS]
        for name, of in samples.items()
    ]
    note = (
        f"Milliseconds, medians of {rounds} rounds. Each reply of the model begins after "
        f"{FIRST_TOKEN * 1000:.0f} ms and has {1 / GAP:.0f} tokens a second, "
        f"{ANSWER_TOKENS} in an answer; retrieval takes {RETRIEVAL_SECONDS * 1000:.0f} ms. "
        "LlamaIndex and Haystack wait for the whole call of the router, as those by hand do."
    )
    return Table(title="One turn at a time", columns=columns, rows=rows, note=note)


def cost_table(samples: Samples) -> Table:
    """Return CPU and calls of the model."""
    columns = ["", *(f"{k}, CPU" for k in KINDS), *(f"{k}, model calls" for k in KINDS)]
    rows = [
        [name, *(_ms(of[kind], "cpu") for kind in KINDS)]
        + [f"{mean(took['calls'] for took in of[kind]):.1f}" for kind in KINDS]
        for name, of in samples.items()
    ]
    note = (
        "Milliseconds of CPU of the system's own process, and calls of the model that were "
        "begun, those that a guess began and that were broken off included."
    )
    return Table(title="What a turn costs", columns=columns, rows=rows, note=note)


def crowd_table(found: Crowds) -> Table:
    """Return how many sessions at once do."""
    columns = ["", "sessions", "turns/s", "CPU a turn", "session, median", "slowest session"]
    rows = []
    for name, of in found.items():
        for sessions in (1, *CROWDS):
            took = of[sessions]
            every = [each for round_ in took for each in round_["sessions"]]
            cells = ["failed", "", "", ""]
            if took:
                rate = median(each["rate"] for each in took)
                cpu = median(each["cpu"] for each in took) * 1000
                cells = [f"{rate:.1f}", f"{cpu:.1f} ms", f"{median(every):.2f} s"]
                cells.append(f"{max(every):.2f} s")
            rows.append([name, str(sessions), *cells])
    note = (
        "Each session asks a first question and a follow-up; all begin at once. The system has "
        f"one core. With no waiting at all, {CROWDS[-1]} sessions would make about "
        f"{CROWDS[-1] * max(of[1][0]['rate'] for of in found.values()):.0f} turns a second. "
        f"What is not done within {SECONDS:.0f} s has failed."
    )
    return Table(title="Many sessions at once", columns=columns, rows=rows, note=note)


def memory_table(found: Mapping[str, Mapping[str, float]]) -> Table:
    """Return what is held."""
    rows = [
        [name, f"{of['process'] / 1024:.0f} MiB", *(_kib(of[k]) for k in ("stream", "session"))]
        for name, of in found.items()
    ]
    note = (
        f"Resident memory of the process, what each of {STREAMS} open streams adds, and what "
        "each session adds after its turn (ours keeps it on the disk, the others in a list)."
    )
    columns = ["", "process", "open stream", "session"]
    return Table(title="Memory", columns=columns, rows=rows, note=note)


def targets(samples: Samples, found: Crowds) -> list[Target]:
    """Compare ours with what it must reach."""
    of = samples[OURS]
    checked = [
        Target(
            figure=f"first token, {kind}",
            target=f"≤ {limit} ms",
            measured=f"{_ms(of[kind], 'first')} ms",
            met=_median(of[kind], "first") * 1000 <= limit,
        )
        for kind, limit in LIMITS.items()
    ]
    cpu = max(_median(of[kind], "cpu") for kind in KINDS) * 1000
    crowd = found[OURS][CROWDS[-1]]
    rate = median([each["rate"] for each in crowd] or [0.0])
    crowded = median([each["cpu"] for each in crowd] or [float("inf")]) * 1000
    slowest = [each["sessions"][-1] / median(each["sessions"]) for each in crowd]
    worst = max(slowest, default=float("inf"))
    return [
        *checked,
        Target(
            figure="CPU a turn, one at a time, of the dearest kind",
            target=f"≤ {CPU_LIMIT} ms",
            measured=f"{cpu:.1f} ms",
            met=cpu <= CPU_LIMIT,
        ),
        *_against(cpu, samples),
        Target(
            figure=f"CPU a turn, {CROWDS[-1]} sessions at once",
            target=f"≤ {CPU_LIMIT} ms",
            measured=f"{crowded:.1f} ms",
            met=crowded <= CPU_LIMIT,
        ),
        Target(
            figure=f"{CROWDS[-1]} sessions at once, on one core",
            target=f"≥ {RATE} turns/s",
            measured=f"{rate:.1f} turns/s",
            met=rate >= RATE,
        ),
        Target(
            figure="none starved: the slowest of them against the one in the middle",
            target=f"≤ {STARVED:.0f} times",
            measured=f"{worst:.1f} times",
            met=worst <= STARVED,
        ),
    ]


def _against(cpu: float, samples: Samples) -> list[Target]:
    """Return the same target as a ratio, which hangs less on the machine."""
    if BY_HAND not in samples:
        return []
    most = CPU_LIMIT / CPU_BY_HAND
    by_hand = max(_median(samples[BY_HAND][kind], "cpu") for kind in KINDS) * 1000
    return [
        Target(
            figure=f"the same against {BY_HAND}",
            target=f"≤ {most:.1f} times",
            measured=f"{cpu / by_hand:.1f} times",
            met=cpu / by_hand <= most,
        )
    ]


def charts(samples: Samples, found: Crowds) -> list[Chart]:
    """Return what the picture shows."""
    drawn = [
        Chart(
            title=f"First token, {kind}",
            unit="ms",
            bars={name: _median(of[kind], "first") * 1000 for name, of in samples.items()},
            target=LIMITS[kind],
        )
        for kind in KINDS
    ]
    cpu = {
        name: max(_median(of[kind], "cpu") for kind in KINDS) * 1000
        for name, of in samples.items()
    }
    rates = {
        name: median(each["rate"] for each in of[CROWDS[-1]])
        for name, of in found.items()
        if of[CROWDS[-1]]
    }
    most = f"Turns a second, {CROWDS[-1]} sessions"
    return [
        *drawn,
        Chart(title="CPU a turn", unit="ms", bars=cpu, target=CPU_LIMIT),
        Chart(title=most, bars=rates, target=RATE),
    ]


def _median(took: list[dict[str, float]], figure: str) -> float:
    return median(each[figure] for each in took)


def _ms(took: list[dict[str, float]], figure: str) -> str:
    milliseconds = _median(took, figure) * 1000
    return f"{milliseconds:.1f}" if figure == "cpu" else f"{milliseconds:,.0f}"


def _kib(kib: float) -> str:
    return f"{max(kib, 0):.1f} KiB"
