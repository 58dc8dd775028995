"""`chatbot eval` and its options. What it needs is imported when it runs."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

from pathlib import Path
from typing import Annotated

import typer

from serving.cli.options import AsJson
from serving.cli.startup import load_settings


def evaluate(  # noqa: PLR0913 - one for each option
    sets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SET",
            help="routing, rewriting, retrieval, answers, or files of your own. [default: all]",
        ),
    ] = None,
    *,
    named: Annotated[
        list[str] | None, typer.Option("--set", metavar="SET", help="The same as SET.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="At most so many cases of each set."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, metavar="NUMBER", help="Cases at once.")
    ] = 4,
    judge: Annotated[
        bool, typer.Option("--judge", help="Let the chatbot's model judge its answers.")
    ] = False,
    judge_model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Let this model judge them.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare with an earlier --output.")
    ] = None,
    floor: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=VALUE", help="Exit code 1 below it. May be repeated."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all results here, as JSON."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure routing, rewriting, retrieval and answers with labelled questions.

    Nothing of it is kept in the history. Ctrl-C prints the results so far. Exit code 1 where
    a floor is missed, or where something could not be measured.
    """
    settings = load_settings()
    from serving.cli.evaluation import Wishes
    from serving.cli.evaluation import evaluate as run_evaluation

    wishes = Wishes(
        sets=[*(sets or ()), *(named or ())],
        limit=limit,
        concurrency=concurrency,
        judge=judge,
        judge_model=judge_model,
        compare=compare,
        floors=floor or (),
        output=output,
        as_json=as_json,
    )
    raise typer.Exit(0 if run_evaluation(settings, wishes) else 1)
