"""Runs labelled questions and tells how good the chatbot is at them."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from chatbot.bootstrap import open_ports
from chatbot.errors import InputError
from chatbot.ports import Ports
from chatbot.settings import Settings
from graphs.conversation import Chatbot
from graphs.evaluation.cases import NAMES, Case, find_set, sample
from graphs.evaluation.experiments import connect
from graphs.evaluation.judging import Judge, open_judge
from graphs.evaluation.patience import Patience
from graphs.evaluation.results import Earlier, Evaluation, read_earlier
from graphs.evaluation.running import Bench
from graphs.evaluation.scoring import METRICS
from graphs.evaluation.suite import Suite
from serving.cli.bars import progress_on
from serving.cli.figures import print_changes, print_figures
from serving.cli.signals import ended_by_signals
from serving.cli.views import open_console
from serving.cli.words import complain, in_one_line, print_json


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the command was asked for."""

    sets: Sequence[str] = ()
    limit: int | None = None
    concurrency: int = 4
    judge: bool = False
    judge_model: str | None = None
    compare: Path | None = None
    floors: Sequence[str] = ()
    output: Path | None = None
    as_json: bool = False


def evaluate(settings: Settings, wishes: Wishes) -> bool:
    """Print how the chatbot does, and return whether that is so and every floor is reached.

    It is not where cases failed for technical reasons, which are told. Ctrl-C ends it with the
    results so far.

    Raises:
        InputError: A set, a floor or a file is not what it has to be.
        ConfigurationError: A setting is wrong.
        KeyboardInterrupt: It was stopped, and what there is was printed.
    """
    sets = _sets(wishes)
    floors = dict(map(_floor, wishes.floors))
    earlier = None if wishes.compare is None else read_earlier(wishes.compare)
    if wishes.output is not None:
        _check_writable(wishes.output)
    evaluation = Evaluation(about={"started_at": datetime.now(UTC).isoformat()})
    asyncio.run(_run(settings, wishes, sets, evaluation))
    _tell(evaluation, wishes, earlier)
    reached = [_reached(evaluation, name, least) for name, least in floors.items()]
    measured = [_measured(evaluation, name) for name in evaluation.sets]
    if not evaluation.complete and not evaluation.given_up:
        complain("Stopped: these are the results so far.")
        raise KeyboardInterrupt
    return all(reached) and all(measured)


def _sets(wishes: Wishes) -> Mapping[str, Sequence[Case]]:
    found: dict[str, Sequence[Case]] = {}
    for given in dict.fromkeys(wishes.sets or NAMES):
        name, cases = find_set(given)
        if name in found:
            message = f"Two sets are called {name}: give one of the files another name."
            raise InputError(message)
        found[name] = sample(cases, wishes.limit)
    return found


async def _run(
    settings: Settings,
    wishes: Wishes,
    sets: Mapping[str, Sequence[Case]],
    evaluation: Evaluation,
) -> None:
    try:
        with ended_by_signals():
            # Conversations are not looked at: whoever keeps them need not be there.
            alone = settings.model_copy(update={"mongodb_uri": None})
            async with open_ports(alone) as ports, _judge(settings, wishes) as judge:
                await _run_suite(wishes, sets, evaluation, ports, judge)
    except asyncio.CancelledError:
        if not evaluation.sets:
            raise


async def _run_suite(
    wishes: Wishes,
    sets: Mapping[str, Sequence[Case]],
    evaluation: Evaluation,
    ports: Ports,
    judge: Judge | None,
) -> None:
    bot = Chatbot(ports)
    evaluation.about = {
        **evaluation.about,
        "model": bot.model_name,
        "judge": judge.name if judge else "",
        "assistants": [each.name for each in await bot.assistants()],
    }
    experiments = connect()
    with progress_on(Console(stderr=True)) as progress:
        tasks = {
            name: progress.add_task(in_one_line(name), total=len(cases), state="")
            for name, cases in sets.items()
        }

        def show(name: str, done: int) -> None:
            state = f"{done} of {len(sets[name])}"
            progress.update(tasks[name], completed=done, state=state)

        def show_wait(seconds: float, why: str) -> None:
            name = next(reversed(evaluation.sets))
            state = f"{len(evaluation.sets[name])} of {len(sets[name])}"
            waits = f"{state}, waiting {seconds:.0f} s: {in_one_line(why, 60)}"
            progress.update(tasks[name], state=waits)

        suite = Suite(
            sets=sets,
            bench=Bench(ports),
            judge=judge,
            experiments=experiments,
            concurrency=wishes.concurrency,
            patience=Patience(show_wait),
            judge_patience=Patience(show_wait),
        )
        await suite.run(evaluation, show)
    if experiments is not None and experiments.problem:
        complain(experiments.problem)


@asynccontextmanager
async def _judge(settings: Settings, wishes: Wishes) -> AsyncIterator[Judge | None]:
    if not wishes.judge and wishes.judge_model is None:
        yield None
        return
    async with open_judge(settings, wishes.judge_model) as judge:
        yield judge


def _tell(evaluation: Evaluation, wishes: Wishes, earlier: Earlier | None) -> None:
    if wishes.output is not None:
        text = json.dumps(evaluation.as_json(), ensure_ascii=False, indent=1)
        try:
            wishes.output.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            message = f"{wishes.output} cannot be written: {error.strerror}."
            raise InputError(message) from None
    if wishes.as_json:
        print_json(evaluation.as_json())
    console = Console(stderr=True, highlight=False) if wishes.as_json else open_console()
    if not wishes.as_json:
        print_figures(console, evaluation)
    if earlier is not None:
        print_changes(console, evaluation, earlier)


def _check_writable(path: Path) -> None:
    """Look before the questions are asked, of which nothing is to be lost.

    Raises:
        InputError: A file cannot be written there.
    """
    place = path if path.exists() else path.parent
    if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        message = f"{path} cannot be written: name a file in a folder that is there."
        raise InputError(message)


def _floor(text: str) -> tuple[str, float]:
    """Return the metric and its floor, as `recall@5=0.9` or `retrieval.recall@5=0.9` says.

    Raises:
        InputError: It says something else.
    """
    name, _, value = text.partition("=")
    try:
        least = float(value)
    except ValueError:
        least = -1.0
    if name.rpartition(".")[2] not in METRICS or not 0 <= least <= 1:
        message = (
            f"--floor {text} cannot be used: write METRIC=VALUE or SET.METRIC=VALUE, with a "
            f"value from 0 to 1. The metrics: {', '.join(METRICS)}."
        )
        raise InputError(message)
    return name, least


def _reached(evaluation: Evaluation, name: str, least: float) -> bool:
    value = evaluation.value(name)
    if value is None:
        complain(f"{name} was not measured, so its floor of {least:g} is not reached.")
        return False
    if value < least:
        complain(f"{name} is {value:.3f}, below its floor of {least:g}.")
    return value >= least


def _measured(evaluation: Evaluation, name: str) -> bool:
    """Tell what of a set was not measured, and why; return whether all of it was."""
    reasons, label = evaluation.failures(name), in_one_line(name)
    for reason, count in reasons.items():
        complain(f"{label}: {count} of the cases failed for technical reasons: {reason}")
    if name in evaluation.given_up:
        complain(f"{label}: given up, {evaluation.not_run[name]} cases were not asked.")
    if unjudged := evaluation.unjudged(name):
        complain(f"{label}: {unjudged} answers have no verdict of the judge.")
    return not (reasons or name in evaluation.given_up or unjudged)
