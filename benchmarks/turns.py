"""What a whole turn costs, ours and the same steps in other ways: time, CPU, crowds, memory.

    python -m benchmarks.turns [part of a system's name ...]

The model server takes 300 ms to the first token of a reply and then sends 50 tokens a second,
60 for an answer; RAGFlow's retrieval takes 150 ms. Services and systems are processes of their
own, one system works at a time, and all take turns in every round, so that noise hits them
alike. Ours runs as it is served: leases, SQLite, citations, limits; without traces.
"""

import sys
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Mapping
from statistics import mean

from benchmarks.model_server import served
from benchmarks.report import progress
from benchmarks.steps import Services
from benchmarks.systems import installed
from benchmarks.turn_figures import CROWDS, KINDS, STREAMS, Crowds, Samples, report
from benchmarks.workers import JobError, Worker, working
from tests.servers.ragflow import KEY

ROUNDS = 4
CROWD_ROUNDS = 1


def singles(workers: Mapping[str, Worker], model_url: str) -> Samples:
    """Let the systems take turns, one turn at a time."""
    found: Samples = {name: defaultdict(list) for name in workers}
    progress("turns: warming up")
    for question in KINDS.values():
        for worker in workers.values():
            worker.begin("turn", question=question, session="warm")
        for worker in workers.values():
            worker.reply()
    for number in range(ROUNDS):
        for name, worker in workers.items():
            progress(f"turns: round {number + 1} of {ROUNDS}, {name}")
            session = uuid.uuid4().hex
            for kind, question in KINDS.items():
                of = uuid.uuid4().hex if kind == "small talk" else session
                before = _calls(model_url)
                took = worker.do("turn", question=question, session=of)
                found[name][kind].append({**took, "calls": _calls(model_url) - before})
    return found


def _calls(model_url: str) -> int:
    with urllib.request.urlopen(f"{model_url}/calls") as reply:  # noqa: S310 - our own server
        return int(reply.read())


def crowds(workers: Mapping[str, Worker], samples: Samples) -> Crowds:
    """Let many sessions ask at once. One session alone is what the samples have."""
    found: Crowds = {name: defaultdict(list) for name in workers}
    for name, alone in samples.items():
        turns = list(zip(alone["first turn"], alone["follow-up"], strict=True))
        one = sorted(first["whole"] + later["whole"] for first, later in turns)
        used = mean(took["cpu"] for pair in turns for took in pair)
        found[name][1] = [{"rate": 2 / mean(one), "cpu": used, "sessions": one}]
    questions = [KINDS["first turn"], KINDS["follow-up"]]
    for sessions in CROWDS:
        for number in range(CROWD_ROUNDS):
            for name, worker in workers.items():
                progress(f"turns: {sessions} sessions, round {number + 1}, {name}")
                try:
                    took = worker.do("crowd", sessions=sessions, questions=questions)
                except JobError as error:  # some do not bear it: the others go on
                    progress(f"turns: {name} failed: {error}")
                    continue
                found[name][sessions].append(took)
    return found


def memories(workers: Mapping[str, Worker]) -> dict[str, dict[str, float]]:
    """Ask each for its memory."""
    found = {}
    for name, worker in workers.items():
        progress(f"turns: memory, {name}")
        try:
            found[name] = worker.do("memory", streams=STREAMS, sessions=10, repeated=15)
        except JobError as error:
            progress(f"turns: {name} failed: {error}")
    return found


def main() -> None:
    """Start servers and systems, measure, and hand in the report."""
    wanted = sys.argv[1:]
    names = [each for each in installed() if not wanted or any(part in each for part in wanted)]
    with served() as model_url, served("benchmarks.ragflow_server") as ragflow_url:
        services = Services(model=model_url, ragflow=ragflow_url, key=KEY)
        with working(dict.fromkeys(names, services)) as workers:
            samples = singles(workers, model_url)
            found = crowds(workers, samples)
        with working(
            dict.fromkeys(names, services)
        ) as workers:  # new ones: a crowd leaves traces
            memory = memories(workers)
    report(samples, found, memory).hand_in("turns")


if __name__ == "__main__":
    main()
