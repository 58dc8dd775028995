"""Runs sets of cases, several cases at once, and collects what came of them as it comes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from langsmith.run_helpers import tracing_context

from chatbot.errors import ChatbotError
from graphs.evaluation.cases import Case
from graphs.evaluation.experiments import Experiments
from graphs.evaluation.judging import Judge, Verdict
from graphs.evaluation.results import Evaluation, Result
from graphs.evaluation.running import Bench
from graphs.evaluation.scoring import score

Tell = Callable[[str, int], None]  # the set, and how many of its cases are done


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What an evaluation needs: the sets, whom to ask, who judges, where the results go."""

    sets: Mapping[str, Sequence[Case]]
    bench: Bench
    judge: Judge | None = None
    experiments: Experiments | None = None
    concurrency: int = 4

    async def run(self, evaluation: Evaluation, tell: Tell) -> None:
        """Run every case. Cancelled, it leaves the results so far in the evaluation."""
        for name, cases in self.sets.items():
            results = evaluation.sets[name] = []
            if self.experiments is not None:
                await self.experiments.begin(name, cases, evaluation.about)
            # Outside an experiment these turns are nobody's conversations.
            traced = self.experiments is not None and self.experiments.active
            try:
                with tracing_context(enabled=traced):
                    await self._run_set(name, cases, results, tell)
            finally:
                if self.experiments is not None:
                    await self.experiments.end(results)
        evaluation.complete = True

    async def _run_set(
        self, name: str, cases: Sequence[Case], results: list[Result], tell: Tell
    ) -> None:
        place = {case.id: at for at, case in enumerate(cases)}
        waiting = iter(cases)

        async def work() -> None:
            for case in waiting:
                results.append(await self._run(case))
                tell(name, len(results))

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.concurrency):
                    workers.create_task(work())
        finally:
            results.sort(key=lambda result: place[result.case.id])

    async def _run(self, case: Case) -> Result:
        config = {} if self.experiments is None else self.experiments.config(case)
        outcome = await self.bench.run(case, config)
        verdict, remark = None, ""
        if self.judge is not None and case.last_step == "answer":
            verdict = Verdict()
            if not outcome.error:
                try:
                    with tracing_context(enabled=False):
                        verdict = await self.judge.verdict(case, outcome)
                    remark = verdict.reason
                except (ChatbotError, TimeoutError) as error:
                    verdict, remark = None, f"the judge gave no verdict: {error}"
        scores = score(case, outcome, verdict)
        return Result(case=case, outcome=outcome, scores=scores, remark=remark)
