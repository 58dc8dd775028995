"""The commands that come in groups: `chatbot sessions …`, `knowledge …` and `keys …`."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

from pathlib import Path
from typing import Annotated

import typer

from serving.cli.options import AsJson, AssistantNames, UserName
from serving.cli.startup import load_settings

sessions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
knowledge = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@sessions.command("list")
def list_sessions(
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How many.")] = 50,
    before: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Go on behind it; the page before ends with one."),
    ] = None,
    as_json: AsJson = False,
    user: UserName = None,
) -> None:
    """List the conversations, the latest first."""
    settings = load_settings()
    from serving.cli import sessions as commands

    commands.list_sessions(settings, limit, before=before, as_json=as_json, user=user)


@sessions.command("show")
def show_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    *,
    limit: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="How many of its newest turns.")
    ] = 50,
    as_json: AsJson = False,
    user: UserName = None,
) -> None:
    """Print a conversation."""
    settings = load_settings()
    from serving.cli import sessions as commands

    commands.show_session(settings, session, limit, as_json=as_json, user=user)


@sessions.command("clear")
def clear_session(
    session: Annotated[str | None, typer.Argument(help="The name of the session.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of the user's.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    user: UserName = None,
) -> None:
    """Forget a conversation, or all. This cannot be taken back."""
    if (session is None) is not everything:
        message = "give the name of a session, or --all"
        raise typer.BadParameter(message)
    settings = load_settings()
    from serving.cli import sessions as commands

    if not yes:
        whose = f" of {user}" if user else ""
        named = f"everything that was said in {session}" if session else "all conversations"
        typer.confirm(f"Forget {named}{whose}?", abort=True)
    if session is None:
        commands.forget_user(settings, user)
    else:
        commands.clear_session(settings, session, user=user)


sessions.command("delete", help="The same as `clear`.")(clear_session)


@sessions.command("search")
def search_sessions(
    text: Annotated[str, typer.Argument(help="Words that a question or answer has.")],
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How many.")] = 20,
    as_json: AsJson = False,
    user: UserName = None,
) -> None:
    """Find what was said before."""
    settings = load_settings()
    from serving.cli import sessions as commands

    commands.search_sessions(settings, text, limit, as_json=as_json, user=user)


@sessions.command("rename")
def rename_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    title: Annotated[str, typer.Argument(help="Its new title.")],
    *,
    user: UserName = None,
) -> None:
    """Give a conversation another title. Its name stays."""
    settings = load_settings()
    from serving.cli import sessions as commands

    commands.rename_session(settings, session, title, user=user)


@sessions.command("export")
def export_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file. [default: stdout]"),
    ] = None,
    user: UserName = None,
) -> None:
    """Write a conversation as JSON, with the record of every turn."""
    settings = load_settings()
    from serving.cli.archive import export

    export(settings, session, output, user=user)


@sessions.command("import")
def import_session(
    file: Annotated[str, typer.Argument(help='An exported session, or "-" for stdin.')],
    *,
    session: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Its name here. [default: the one it had]"),
    ] = None,
    user: UserName = None,
) -> None:
    """Read an exported conversation in again."""
    settings = load_settings()
    from serving.cli.archive import restore

    restore(settings, file, session, user=user)


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
        int | None,
        typer.Option(min=1, max=30, metavar="NUMBER", help="How many. [default: PASSAGES]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a query finds, with scores, without asking a model."""
    settings = load_settings()
    from serving.cli import knowledge as commands

    commands.search(settings, query, assistant or [], limit, as_json=as_json)


@keys.command("create")
def create_key(
    user: Annotated[str, typer.Argument(help="Whose key it is, such as ann@example.com.")],
    *,
    assistant: Annotated[
        list[str] | None,
        typer.Option(
            "--assistant",
            "-a",
            metavar="NAME",
            help="May ask this one (name or id) alone. Repeat it for several. [default: all]",
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="NUMBER", help="How long it works. [default: for ever]"),
    ] = None,
) -> None:
    """Make an API key for a user and print it, this once."""
    settings = load_settings()
    from serving.cli import keys as commands

    commands.create(settings, user, assistant, days)


@keys.command("list", short_help="List the keys: whose they are and what they may.")
def list_keys(*, as_json: AsJson = False) -> None:
    """List the keys: whose they are and what they may, not the keys themselves."""
    settings = load_settings()
    from serving.cli import keys as commands

    commands.show(settings, as_json=as_json)


@keys.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(help="The key's name in the list.")],
) -> None:
    """Take a key back."""
    settings = load_settings()
    from serving.cli import keys as commands

    commands.revoke(settings, key)
