"""The way of a turn through the graph, as its trace tells it.

    async def test_chat(traces: Traces, bench: Bench) -> None:
        answer = await bench.bot.ask("Hello")
        traces.of(answer).goes("load_history", "route", "route > router", ...)

Steps are told in their order, each followed by what it called: models, tools, searches. In
brackets stands what else the trace says of it: `guess` (begun before it was known to be
wanted), `early` (no more of it was wanted), `cancelled`, `stopped`, `failed`. What is begun on
a guess comes last in its step, in the order of the alphabet: nobody waits for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest
from agentevals.graph_trajectory.strict import graph_trajectory_strict_match
from agentevals.types import GraphTrajectory
from langsmith.utils import get_env_var

from chatbot.redaction import Redaction
from chatbot.traces.client import TraceClient
from graphs import Answer
from tests.servers.traces import Run, TraceSink, trace_sink

KEY = "ls-a-key-of-nobody"


@dataclass(frozen=True)
class Trajectory:
    """The trace of one turn."""

    run: Run

    @property
    def facts(self) -> dict[str, Any]:
        """What the root's metadata says of the turn."""
        return self.run.metadata

    @property
    def steps(self) -> list[str]:
        return list(_steps(self.run, ""))

    def goes(self, *expected: str) -> None:
        """Fail unless these are the steps, in this order."""
        match = graph_trajectory_strict_match(
            outputs=_trajectory(self.steps), reference_outputs=_trajectory(expected)
        )
        assert match["score"], f"expected {list(expected)}, went {self.steps}"

    def has(self, **facts: object) -> None:
        """Fail unless the root says all this."""
        found = {name: self.facts.get(name) for name in facts}
        assert found == facts, f"expected {facts}, found {found}"


class Traces:
    """The traces of the turns that this process answers."""

    def __init__(self, sink: TraceSink, client: TraceClient) -> None:
        self.sink = sink
        self.client = client

    def of(self, turn: Answer | Sequence[Mapping[str, Any]] | str) -> Trajectory:
        """Return the trace of a turn: of an answer, of its events, or by its id."""
        if isinstance(turn, Answer):
            turn = str(turn.metadata["turn_id"])
        elif not isinstance(turn, str):
            turn = next(str(e["data"]["turn_id"]) for e in turn if e["type"] == "metadata")
        self.client.flush(timeout=10)
        return Trajectory(self.sink.wait_for(turn))


@contextmanager
def recording(developer: Mapping[str, str], **choices: Any) -> Iterator[Traces]:
    """Return what takes the traces of turns, once it is configured as LangSmith's client.

    `developer` are LangSmith's variables of whoever runs the tests. With a key among them the
    traces go to LangSmith as well.
    """
    with trace_sink() as sink:
        urls = {sink.url: KEY}
        if key := developer.get("LANGSMITH_API_KEY"):
            # The first is where datasets and experiments are kept.
            hosted = developer.get("LANGSMITH_ENDPOINT", "https://api.smith.langchain.com")
            urls = {hosted: key, **urls}
        client = TraceClient(Redaction([KEY]), api_urls=urls, **choices)
        try:
            yield Traces(sink, client)
        finally:
            if len(urls) == 1:
                client.close()  # else LangSmith's plugin ends its experiment after this
            client.flush(timeout=10)


@contextmanager
def tracing(sink: str, **variables: str) -> Iterator[None]:
    """Have the chatbots that are opened in the block send their traces to this address.

    `variables` are LangSmith's own, without their prefix.
    """
    cached = cast("Any", get_env_var)
    chosen = {"TRACING": "true", "ENDPOINT": sink, "API_KEY": KEY, **variables}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in chosen.items():
            environment.setenv(f"LANGSMITH_{name}", value)
        cached.cache_clear()  # LangSmith reads each variable once
        try:
            yield
        finally:
            environment.undo()
            cached.cache_clear()


def _steps(run: Run, above: str) -> Iterator[str]:
    guesses = []
    for child in run.children:
        name = f"{above}{child.name}{_remark(child)}"
        if child.metadata.get("speculative"):
            guesses.append(name)
        else:
            yield name
            yield from _steps(child, f"{above}{child.name} > ")
    yield from sorted(guesses)


def _remark(run: Run) -> str:
    said = [
        "guess" if run.metadata.get("speculative") else "",
        str(run.metadata.get("ended") or ""),
        "failed" if run.data.get("error") else "",
    ]
    remarks = ", ".join(filter(None, said))
    return f" ({remarks})" if remarks else ""


def _trajectory(steps: Sequence[str]) -> GraphTrajectory:
    return {"inputs": None, "results": [], "steps": [list(steps)]}
