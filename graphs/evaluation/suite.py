"""Runs sets of cases, several cases at once, and collects what came of them as it comes."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from langsmith.run_helpers import tracing_context

from chatbot.errors import ChatbotError, ModelError
from graphs.evaluation.cases import Case
from graphs.evaluation.experiments import Experiments
from graphs.evaluation.judging import Judge, Verdict
from graphs.evaluation.patience import Failure, HopelessError, Patience
from graphs.evaluation.results import Evaluation, Result
from graphs.evaluation.running import Bench, Outcome
from graphs.evaluation.scoring import score

Tell = Callable[[str, int], None]  # the set, and how many of its cases are done


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ruling:
    """The judge's verdict, if there is one, and what to remark on it."""

    verdict: Verdict | None
    remark: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What an evaluation needs: the sets, whom to ask, who judges, where the results go."""

    sets: Mapping[str, Sequence[Case]]
    bench: Bench
    judge: Judge | None = None
    experiments: Experiments | None = None
    concurrency: int = 4
    patience: Patience = field(default_factory=Patience)
    judge_patience: Patience = field(default_factory=Patience)

    async def run(self, evaluation: Evaluation, tell: Tell) -> None:
        """Run every case. Cancelled, it leaves the results so far in the evaluation.

        What fails for technical reasons is asked again. A set in which nothing works ends
        early, and the evaluation knows why.
        """
        for name, cases in self.sets.items():
            results = evaluation.sets[name] = []
            if self.experiments is not None:
                await self.experiments.begin(name, cases, evaluation.about)
            # Outside an experiment these turns are nobody's conversations.
            traced = self.experiments is not None and self.experiments.active
            self.patience.hope()
            try:
                with tracing_context(enabled=traced):
                    await self._run_set(name, cases, results, tell)
            except* HopelessError as group:
                evaluation.given_up[name] = str(group.exceptions[0])
            finally:
                evaluation.not_run[name] = len(cases) - len(results)
                if self.experiments is not None:
                    await self.experiments.end(results)
        evaluation.complete = not evaluation.given_up

    async def _run_set(
        self, name: str, cases: Sequence[Case], results: list[Result], tell: Tell
    ) -> None:
        place = {case.id: at for at, case in enumerate(cases)}
        waiting = iter(cases)

        async def work() -> None:
            for case in waiting:
                results.append(await self._run(case))
                tell(name, len(results))
                self.patience.check(results[-1].outcome.failure)

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.concurrency):
                    workers.create_task(work())
        finally:
            results.sort(key=lambda result: place[result.case.id])

    async def _run(self, case: Case) -> Result:
        async def ask() -> Outcome:
            config = {} if self.experiments is None else self.experiments.config(case)
            return await self.bench.run(case, config)

        outcome = await self.patience.ask(ask)
        ruling = _Ruling(verdict=None)
        if self.judge is not None and case.last_step == "answer":
            ruling = _Ruling(verdict=Verdict())
            if not outcome.error:
                judging = partial(self._judge, self.judge, case, outcome)
                ruling = await self.judge_patience.ask(judging)
        return Result(
            case=case,
            outcome=outcome,
            scores=score(case, outcome, ruling.verdict),
            remark=ruling.remark,
            unjudged=ruling.failure is not None,
        )

    @staticmethod
    async def _judge(judge: Judge, case: Case, outcome: Outcome) -> _Ruling:
        try:
            with tracing_context(enabled=False):
                verdict = await judge.verdict(case, outcome)
        except (ChatbotError, TimeoutError) as error:
            known = error if isinstance(error, ChatbotError) else ModelError("timeout", "")
            remark = f"the judge gave no verdict: {error}"
            return _Ruling(verdict=None, remark=remark, failure=Failure.of(known))
        return _Ruling(verdict=verdict, remark=verdict.reason)
