"""The commands that come in groups: `chatbot sessions …` and `chatbot knowledge …`."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

from typing import Annotated

import typer

from serving.cli.options import AsJson, AssistantNames
from serving.cli.startup import load_settings

sessions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
knowledge = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@sessions.command("list")
def list_sessions(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the conversations, the latest first."""
    settings = load_settings()
    from serving.cli import sessions as commands

    commands.list_sessions(settings, limit, as_json=as_json)


@sessions.command("show")
def show_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many of its newest turns.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Print a conversation."""
    settings = load_settings()
    from serving.cli import sessions as commands

    commands.show_session(settings, session, limit, as_json=as_json)


@sessions.command("clear")
def clear_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget a conversation. This cannot be taken back."""
    settings = load_settings()
    from serving.cli import sessions as commands

    if not yes:
        typer.confirm(f"Forget everything that was said in {session}?", abort=True)
    commands.clear_session(settings, session)


@knowledge.command("list")
def list_assistants(*, as_json: AsJson = False) -> None:
    """List the assistants and what they know."""
    settings = load_settings()
    from serving.cli import knowledge as commands

    commands.list_assistants(settings, as_json=as_json)


@knowledge.command("search")
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    *,
    assistant: AssistantNames = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=30, help="How many. [default: PASSAGES]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a query finds, with scores, without asking a model."""
    settings = load_settings()
    from serving.cli import knowledge as commands

    commands.search(settings, query, assistant or [], limit, as_json=as_json)
