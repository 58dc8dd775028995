"""What the chatbot finds and how it routes without any service: no change may make it worse."""

from pathlib import Path

import pytest

from chatbot.bootstrap import open_ports
from chatbot.settings import PROJECT, Settings
from graphs.evaluation.cases import find_set
from graphs.evaluation.results import Evaluation
from graphs.evaluation.running import Bench
from graphs.evaluation.suite import Suite

# A little below what was measured when they were set, which stands behind them.
FLOORS = {
    "routing.route": 0.90,  # 0.931
    "rewriting.kept": 0.88,  # 0.911
    "rewriting.recall@5": 0.94,  # 0.984
    "retrieval.recall@5": 0.79,  # 0.821
    "retrieval.mrr@5": 0.72,  # 0.755
    "answers.answered": 0.93,  # 0.978
    "answers.refused": 0.50,  # 0.560
    "answers.facts": 0.95,  # 1.0
    "unseen.route": 0.95,  # 1.0
    "unseen.answered": 0.72,  # 0.766
    "unseen.refused": 0.65,  # 0.700
}
# Questions that weights and word lists were not chosen by.
UNSEEN = str(PROJECT / "benchmarks" / "data" / "unseen.jsonl")


@pytest.mark.parametrize("name", ["routing", "rewriting", "retrieval", "answers", UNSEEN])
async def test_the_embedded_default_reaches_its_floors(name: str, tmp_path: Path) -> None:
    evaluation = Evaluation(about={})
    async with open_ports(Settings(chatbot_data_dir=tmp_path)) as ports:
        name, cases = find_set(name)
        suite = Suite(sets={name: cases}, bench=Bench(ports))
        await suite.run(evaluation, lambda _name, _done: None)
        kept = await ports.history.sessions("anonymous", limit=10)

    assert evaluation.complete
    assert evaluation.failed(name) == 0
    floors = {metric: floor for metric, floor in FLOORS.items() if metric.startswith(name)}
    reached = {metric: evaluation.value(metric) or 0.0 for metric in floors}
    assert not [metric for metric in floors if reached[metric] < floors[metric]], reached
    assert not kept
