"""What the chatbot finds and how it routes without any service: no change may make it worse."""

from pathlib import Path

import pytest

from chatbot.bootstrap import open_ports
from chatbot.settings import Settings
from graphs.evaluation.cases import find_set
from graphs.evaluation.results import Evaluation
from graphs.evaluation.running import Bench
from graphs.evaluation.suite import Suite

# A little below what was measured when they were set, which stands behind them.
FLOORS = {
    "routing.route": 0.90,  # 0.931
    "rewriting.kept": 0.86,  # 0.887
    "rewriting.recall@5": 0.91,  # 0.952
    "retrieval.recall@5": 0.76,  # 0.786
    "retrieval.mrr@5": 0.68,  # 0.712
}


@pytest.mark.parametrize("name", ["routing", "rewriting", "retrieval"])
async def test_the_embedded_default_reaches_its_floors(name: str, tmp_path: Path) -> None:
    evaluation = Evaluation(about={})
    async with open_ports(Settings(chatbot_data_dir=tmp_path)) as ports:
        suite = Suite(sets=dict([find_set(name)]), bench=Bench(ports))
        await suite.run(evaluation, lambda _name, _done: None)
        kept = await ports.history.sessions("anonymous", limit=10)

    assert evaluation.complete
    assert evaluation.failed(name) == 0
    floors = {metric: floor for metric, floor in FLOORS.items() if metric.startswith(name)}
    reached = {metric: evaluation.value(metric) or 0.0 for metric in floors}
    assert not [metric for metric in floors if reached[metric] < floors[metric]], reached
    assert not kept
