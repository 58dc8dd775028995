"""The tables of an evaluation."""

from collections.abc import Sequence

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
        console.print()
    for metric in METRICS:
        if metric in seen:
            console.print(Text(f"{metric}: {METRICS[metric]}", style="dim"))


def print_changes(console: Console, evaluation: Evaluation, earlier: Earlier) -> None:
    """Print how each metric differs from an earlier run, and in which cases."""
    console.print()
    table = plain_table("SINCE THEN", "N", "CHANGE", "95 %", "BETTER", "WORSE")
    for name in evaluation.sets:
        for metric, change in evaluation.changes(name, earlier):
            table.add_row(
                f"{in_one_line(name)} {metric}",
                str(change.n),
                f"{change.difference:+.3f}",
                _interval(change.low, change.high, "+.3f"),
                _cases(change.better),
                _cases(change.worse),
            )
    if table.row_count:
        console.print(table)
    else:
        console.print("The earlier run has none of these cases.")


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
