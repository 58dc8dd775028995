"""The results of an evaluation: figures with their intervals, as JSON, beside earlier ones."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chatbot.errors import InputError
from graphs.evaluation.cases import Case, expected
from graphs.evaluation.running import Outcome
from graphs.evaluation.scoring import METRICS
from graphs.evaluation.statistics import Estimate, estimate, estimate_change

FORMAT = 1
ALL = "all"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A case, what became of it, and its scores. `remark` is the judge's reason.

    It is `unjudged` where the judge was asked, and gave no verdict.
    """

    case: Case
    outcome: Outcome
    scores: Mapping[str, float]
    remark: str = ""
    unjudged: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The rows of the tables that it counts in."""
        return tuple(filter(None, (ALL, self.case.language, self.case.kind)))

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        found = {
            "id": self.case.id,
            "kind": self.case.kind,
            "language": self.case.language,
            "question": self.case.question,
            "earlier": [each.question for each in self.case.earlier],
            "expected": expected(self.case),
            "got": self.outcome.as_json(),
            "remark": self.remark,
            "unjudged": self.unjudged,
        }
        kept = {name: value for name, value in found.items() if value}
        return {**kept, "scores": dict(self.scores)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """How a metric differs from an earlier run, over the cases that both have."""

    difference: Estimate
    better: Sequence[str]
    worse: Sequence[str]


@dataclass(kw_only=True)
class Evaluation:
    """The results of every set, in their order, and what they were made with.

    Of a set that ended early, `given_up` has the reason; `not_run` counts the cases that were
    not asked, or not to the end.
    """

    about: Mapping[str, object]
    sets: dict[str, list[Result]] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, int] = field(default_factory=dict)
    complete: bool = False

    def failed(self, name: str) -> int:
        """Return how many cases of a set could not be run to their end."""
        return sum(bool(result.outcome.error) for result in self.sets[name])

    def failures(self, name: str) -> Mapping[str, int]:
        """Return the technical reasons for which cases of a set failed, each with how many.

        Of each code one: they differ in seconds, or in what they are about.
        """
        found = [r.outcome.failure for r in self.sets[name] if r.outcome.failure is not None]
        reasons = {each.code or each.reason: each.reason for each in reversed(found)}
        return Counter(reasons[each.code or each.reason] for each in found)

    def unjudged(self, name: str) -> int:
        """Return how many answers of a set have no verdict, though there was a judge."""
        return sum(result.unjudged for result in self.sets[name])

    def wrong(self, name: str) -> Mapping[str, Sequence[str]]:
        """Return, for each metric of a set, the cases that have less than all of it."""
        found = {
            metric: [r.case.id for r in self.sets[name] if r.scores.get(metric, 1) < 1]
            for metric in METRICS
        }
        return {metric: ids for metric, ids in found.items() if ids}

    def figures(self, name: str) -> Iterator[tuple[str, Mapping[str, Estimate]]]:
        """Yield each metric of a set with its estimates, over all and in each group."""
        results = self.sets[name]
        groups = dict.fromkeys(group for result in results for group in result.groups)
        for metric in METRICS:
            scores = {
                group: [
                    result.scores[metric]
                    for result in results
                    if group in result.groups and metric in result.scores
                ]
                for group in groups
            }
            found = {group: estimate(some) for group, some in scores.items() if some}
            if found:
                yield metric, found

    def value(self, metric: str) -> float | None:
        """Return the lowest value of `metric`, or of `set.metric`; nothing where it is not."""
        values = [
            figures[ALL].value
            for name in self.sets
            for each, figures in self.figures(name)
            if metric in {each, f"{name}.{each}"}
        ]
        return min(values, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain JSON, the form of `read_earlier`."""
        return {
            "format": FORMAT,
            **self.about,
            "complete": self.complete,
            "sets": {
                name: {
                    "cases_failed": self.failed(name),
                    "cases_not_run": self.not_run.get(name, 0),
                    "given_up": self.given_up.get(name),
                    "failures": dict(self.failures(name)),
                    "wrong": self.wrong(name),
                    "figures": [
                        {"metric": metric, "group": group, **_rounded(figure)}
                        for metric, figures in self.figures(name)
                        for group, figure in figures.items()
                    ],
                    "cases": [result.as_json() for result in results],
                }
                for name, results in self.sets.items()
            },
        }

    def changes(self, name: str, earlier: "Earlier") -> Iterator[tuple[str, Change]]:
        """Yield what became of each metric since an earlier run, case by case.

        Cases that failed for technical reasons, now or then, tell nothing about that.
        """
        before = earlier.scores.get(name, {})
        both = [
            (result, before.get(_label(result.as_json()), {}))
            for result in self.sets[name]
            if result.outcome.failure is None
        ]
        for metric in METRICS:
            pairs = {
                result.case.id: (old[metric], result.scores[metric])
                for result, old in both
                if metric in result.scores and metric in old
            }
            if not pairs:
                continue
            differences = [new - old for old, new in pairs.values()]
            yield (
                metric,
                Change(
                    difference=estimate_change(differences),
                    better=[each for each, (old, new) in pairs.items() if new > old],
                    worse=[each for each, (old, new) in pairs.items() if new < old],
                ),
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """An earlier evaluation: of each set, the scores of each case by its label.

    `failures` counts the cases of a set that have none that mean something.
    """

    model: str
    judge: str
    scores: Mapping[str, Mapping[str, Mapping[str, float]]]
    failures: Mapping[str, int]


def read_earlier(path: Path) -> Earlier:
    """Return an evaluation that was written as JSON.

    Raises:
        InputError: The file cannot be read, or is something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise _unlike(path)
        sets = {name: found["cases"] for name, found in data["sets"].items()}
        return Earlier(
            model=str(data.get("model", "")),
            judge=str(data.get("judge", "")),
            scores={
                name: {
                    _label(case): {key: float(value) for key, value in case["scores"].items()}
                    for case in cases
                    if not _has_failed(case)
                }
                for name, cases in sets.items()
            },
            failures={name: sum(map(_has_failed, cases)) for name, cases in sets.items()},
        )
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise InputError(message) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unlike(path) from None


def _has_failed(case: Mapping[str, Any]) -> bool:
    return bool(case.get("got", {}).get("failure"))


def _label(case: Mapping[str, Any]) -> str:
    """Return what makes a case the same: one that expects something else is another."""
    parts = [case["id"], case["question"], case.get("earlier"), case["expected"]]
    return json.dumps(parts, sort_keys=True)


def _unlike(path: Path) -> InputError:
    return InputError(f"{path} is no evaluation, as `chatbot eval --json` writes it.")


def _rounded(figure: Estimate) -> dict[str, float]:
    found = {"value": figure.value, "low": figure.low, "high": figure.high}
    return {"n": figure.n, **{name: round(value, 4) for name, value in found.items()}}
