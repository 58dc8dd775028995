"""What traces cost a turn, and what a LangSmith costs it that is dead, refuses or hangs.

    python -m benchmarks.tracing

The same chatbot, traced in different ways, each in a process of its own; one works at a time
and all take turns in every round, so that noise hits them alike. Services are those of
`benchmarks.turns`.
"""

import os
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from statistics import median

from benchmarks.model_server import served
from benchmarks.report import Report, Table, Target, progress
from benchmarks.steps import Services
from benchmarks.turn_figures import KINDS
from benchmarks.workers import Worker, working
from tests.servers.ragflow import KEY
from tests.servers.traces import trace_sink

ROUNDS = 6
OURS = "ours"
UNTRACED = "untraced"
FAULTS: Mapping[str, int | str | None] = {
    "traced": None,
    "LangSmith hangs": "hang",
    "LangSmith refuses (429)": 429,
    "LangSmith is dead": "dead",
}
MOST = 0.05  # that a turn may take longer
DEAD = "http://127.0.0.1:9"  # nobody listens there

Samples = Mapping[str, Mapping[str, list[dict[str, float]]]]


@contextmanager
def ways(services: Services) -> Iterator[dict[str, Worker]]:
    """Start the chatbot once for each way of tracing."""
    with ExitStack() as stack:
        started = {UNTRACED: stack.enter_context(working({OURS: services}))[OURS]}
        for name, fault in FAULTS.items():
            url = DEAD
            if fault != "dead":
                sink = stack.enter_context(trace_sink())
                sink.fault, url = fault, sink.url
            variables = {
                "LANGSMITH_TRACING": "true",
                "LANGSMITH_API_KEY": "nobodys",
                "LANGSMITH_ENDPOINT": url,
            }
            with _environment(variables):
                started[name] = stack.enter_context(working({OURS: services}))[OURS]
        yield started


def sampled(workers: Mapping[str, Worker]) -> Samples:
    """Let them take turns, one turn at a time."""
    found: dict[str, dict[str, list[dict[str, float]]]] = {
        name: defaultdict(list) for name in workers
    }
    for number in range(ROUNDS + 1):
        progress(f"tracing: round {number} of {ROUNDS}")
        for name, worker in workers.items():
            session = uuid.uuid4().hex
            for kind, question in KINDS.items():
                took = worker.do("turn", question=question, session=session)
                if number:  # the first round warms up
                    found[name][kind].append(took)
    return found


def report(samples: Samples) -> Report:
    """Return the medians, and by how much a turn takes longer."""

    def all_of(name: str, figure: str) -> float:
        return sum(median(t[figure] for t in samples[name][kind]) for kind in KINDS)

    rows, targets = [], []
    for name in samples:
        cells = [
            f"{median(t['whole'] for t in samples[name][kind]) * 1000:,.0f} ms"
            for kind in KINDS
        ]
        longer = all_of(name, "whole") / all_of(UNTRACED, "whole") - 1
        cpu = all_of(name, "cpu") / len(KINDS) * 1000
        rows.append([name, *cells, f"{longer:+.1%}", f"{cpu:.1f} ms"])
        if name != UNTRACED:
            targets.append(
                Target(
                    figure=f"a turn takes longer: {name}",
                    target=f"≤ {MOST:.0%}",
                    measured=f"{longer:+.1%}",
                    met=longer <= MOST,
                )
            )
    columns = ["", *KINDS, "longer", "CPU per turn"]
    table = Table(title="Traces", columns=columns, rows=rows, note="Medians of whole turns.")
    return Report(tables=[table], targets=targets)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main() -> None:
    """Start servers and chatbots, measure, and hand in the report."""
    with served() as model, served("benchmarks.ragflow_server") as ragflow:
        services = Services(model=model, ragflow=ragflow, key=KEY)
        with ways(services) as workers:
            samples = sampled(workers)
    report(samples).hand_in("tracing")


if __name__ == "__main__":
    main()
