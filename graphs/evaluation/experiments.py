"""Puts an evaluation into LangSmith: sets as datasets, runs over them as experiments."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import requests
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client
from langsmith.utils import LangSmithError, get_env_var, tracing_is_enabled

from graphs.evaluation.cases import Case, expected
from graphs.evaluation.results import Result

logger = logging.getLogger(__name__)

TIMEOUTS_MS = (3_000, 10_000)
FLUSH_SECONDS = 20.0
HIDING = ("HIDE_INPUTS", "HIDE_OUTPUTS")


def connect() -> "Experiments | None":
    """Return where the experiments go, or nothing where tracing is off or has no key."""
    if not tracing_is_enabled() or not get_env_var("API_KEY"):
        return None
    experiments = Experiments(Client(timeout_ms=TIMEOUTS_MS, tracing_sampling_rate=1.0))
    hidden = [f"LANGSMITH_{name}" for name in HIDING if get_env_var(name) in {"true", "True"}]
    if hidden:
        # A dataset is nothing but questions and answers.
        experiments.problem = f"{hidden[0]} is set: nothing of it was sent to LangSmith."
    return experiments


class Experiments:
    """The experiments of one evaluation. What LangSmith does not take is told, and left out."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._runs: dict[str, uuid.UUID] = {}
        self._examples: dict[str, uuid.UUID] = {}
        self._project = ""
        self._project_id: uuid.UUID | None = None
        self.problem = ""

    @property
    def active(self) -> bool:
        """Whether LangSmith takes the cases of the set."""
        return bool(self._project)

    async def begin(
        self, name: str, cases: Sequence[Case], about: Mapping[str, object]
    ) -> None:
        """Have a dataset with these cases, and begin an experiment over it."""
        self._runs.clear()
        self._project = ""
        if not self.problem:
            await asyncio.to_thread(self._guarded, lambda: self._begin(name, cases, about))

    def config(self, case: Case) -> RunnableConfig:
        """Return what makes the run of a case a part of the experiment."""
        if not self.active:
            return {}
        tracer = LangChainTracer(
            example_id=self._examples[case.id], project_name=self._project, client=self._client
        )
        self._runs[case.id] = uuid.uuid4()
        return {"run_id": self._runs[case.id], "callbacks": [tracer]}

    async def end(self, results: Sequence[Result]) -> None:
        """Send the scores, and wait until everything has arrived."""
        if self.active:
            await asyncio.to_thread(self._guarded, lambda: self._end(results))

    def _begin(self, name: str, cases: Sequence[Case], about: Mapping[str, object]) -> None:
        client, title = self._client, f"chatbot {name}"
        if client.has_dataset(dataset_name=title):
            dataset = client.read_dataset(dataset_name=title)
        else:
            dataset = client.create_dataset(title)
        # A case that is changed is another example: earlier experiments keep theirs.
        self._examples = {
            case.id: uuid.uuid5(dataset.id, case.model_dump_json()) for case in cases
        }
        known = {example.id for example in client.list_examples(dataset_id=dataset.id)}
        missing = [_example(case, self._examples[case.id]) for case in cases]
        missing = [each for each in missing if each["id"] not in known]
        if missing:
            client.create_examples(dataset_id=dataset.id, examples=missing)
        project = client.create_project(
            f"{title} {datetime.now(UTC):%Y-%m-%d %H:%M:%S} {uuid.uuid4().hex[:4]}",
            reference_dataset_id=dataset.id,
            metadata={key: value for key, value in about.items() if value},
        )
        self._project, self._project_id = str(project.name), project.id

    def _end(self, results: Sequence[Result]) -> None:
        for result in results:
            run_id = self._runs[result.case.id]
            for name, score in result.scores.items():
                self._client.create_feedback(
                    run_id,
                    key=name,
                    score=score,
                    comment=result.remark or result.outcome.error or None,
                    trace_id=run_id,
                    session_id=self._project_id,
                )
        self._client.flush(timeout=FLUSH_SECONDS)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (LangSmithError, requests.RequestException) as error:
            logger.warning("LangSmith took no experiment: %s", type(error).__name__)
            self.problem = f"LangSmith did not take the experiment ({type(error).__name__})."


def _example(case: Case, example_id: uuid.UUID) -> dict[str, object]:
    earlier = [each.model_dump() for each in case.earlier]
    asked = {"question": case.question, "earlier": earlier}
    return {
        "id": example_id,
        "inputs": {name: value for name, value in asked.items() if value},
        "outputs": expected(case),
        "metadata": {"id": case.id, "kind": case.kind, "language": case.language},
    }
