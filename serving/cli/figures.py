"""The tables of an evaluation."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from graphs.evaluation.results import ALL, Earlier, Evaluation
from graphs.evaluation.scoring import METRICS
from graphs.evaluation.statistics import Estimate
from serving.cli.tables import plain_table
from serving.cli.words import in_one_line

NAMED = 10  # cases in a list
LANGUAGES = ("en", "zh")
_WHOLE = {ALL, *LANGUAGES}


def print_figures(console: Console, evaluation: Evaluation) -> None:
    """Print a table for each set, by language and kind, then what each metric is."""
    seen: set[str] = set()
    for name, results in evaluation.sets.items():
        if not results:
            continue
        failed = evaluation.failed(name)
        note = f", {failed} of them failed and count as 0" if failed else ""
        if left := evaluation.not_run.get(name, 0):
            note += f"; {left} more were not asked"
        console.print(Text(f"{in_one_line(name)}: {len(results)} cases{note}", style="bold"))
        table = plain_table("METRIC", "N", "VALUE", "95 %", "ENGLISH", "中文")
        for metric, figures in evaluation.figures(name):
            seen.add(metric)
            whole = figures[ALL]
            table.add_row(
                metric,
                str(whole.n),
                _number(whole.value),
                _interval(whole.low, whole.high),
                *(_of(figures.get(language)) for language in LANGUAGES),
            )
            kinds = {kind: each for kind, each in figures.items() if kind not in _WHOLE}
            differ = len({each.value for each in kinds.values()}) > 1
            for kind, each in kinds.items() if differ else ():
                interval = _interval(each.low, each.high)
                cells = (f"  {in_one_line(kind)}", str(each.n), _number(each.value), interval)
                table.add_row(*(Text(cell, style="dim") for cell in cells))
        console.print(table)
        for metric, ids in evaluation.wrong(name).items():
            console.print(Text(f"{metric}, not 1: ", style="dim") + _cases(ids))
        console.print()
    for metric in METRICS:
        if metric in seen:
            console.print(Text(f"{metric}: {METRICS[metric]}", style="dim"))


def print_changes(console: Console, evaluation: Evaluation, earlier: Earlier) -> None:
    """Print how each metric differs from an earlier run, and in which cases."""
    console.print()
    for note in _differences(evaluation, earlier):
        console.print(Text(note, style="bold"))
    table = plain_table("SINCE THEN", "N", "CHANGE", "95 %", "BETTER", "WORSE")
    for name in evaluation.sets:
        for metric, change in evaluation.changes(name, earlier):
            table.add_row(
                f"{in_one_line(name)} {metric}",
                str(change.difference.n),
                f"{change.difference.value:+.3f}",
                _interval(change.difference.low, change.difference.high, "+.3f"),
                _cases(change.better),
                _cases(change.worse),
            )
    if table.row_count:
        console.print(table)
    else:
        console.print("The earlier run has none of these cases.")


def _differences(evaluation: Evaluation, earlier: Earlier) -> Iterator[str]:
    """Yield what makes two runs hard to compare."""
    for part, before in (("model", earlier.model), ("judge", earlier.judge)):
        if before != (now := evaluation.about.get(part, "")):
            then, since = (in_one_line(str(each)) or "none" for each in (before, now))
            yield f"The {part} is another one: then {then}, now {since}."
    for name in evaluation.sets:
        failed = earlier.failures.get(name, 0), sum(evaluation.failures(name).values())
        if any(failed):
            yield (
                f"{in_one_line(name)}: cases that failed for technical reasons are left out "
                f"here, {failed[0]} of the earlier run and {failed[1]} of this one."
            )


def _of(figure: Estimate | None) -> str:
    return "" if figure is None else _number(figure.value)


def _number(value: float) -> str:
    return f"{value:.3f}"


def _interval(low: float, high: float, form: str = ".3f") -> str:
    return f"{low:{form}} to {high:{form}}"


def _cases(ids: Sequence[str]) -> Text:
    if not ids:
        return Text("0")
    named = ", ".join(in_one_line(each, 40) for each in ids[:NAMED])
    more = ", …" if len(ids) > NAMED else ""
    return Text(f"{len(ids)}: {named}{more}")
