"""The commands and their options. What a command needs is imported when it runs."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

import io
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from chatbot.domain import Thumb
from chatbot.errors import ChatbotError, ConfigurationError, InputError
from serving.cli.evaluate import evaluate
from serving.cli.groups import keys, knowledge, sessions
from serving.cli.options import (
    AsJson,
    AssistantNames,
    ImageNames,
    LanguageName,
    Port,
    RouteName,
    SessionName,
    UserName,
    checked_session,
)
from serving.cli.startup import load_settings
from serving.cli.words import complain

FAILED = 1
MISUSED = 2
INTERRUPTED = 130

app = typer.Typer(
    name="chatbot",
    help="Ask a knowledge base and get cited answers: in a terminal, from scripts, over HTTP.",
    epilog="Settings come from the environment, .env.local and .env: see `chatbot doctor`.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(sessions, name="sessions", help="List, show and clear conversations.")
app.add_typer(knowledge, name="knowledge", help="See what the knowledge base holds and finds.")
app.add_typer(keys, name="keys", help="Make, list and revoke the API keys of users.")


def run() -> NoReturn:
    """Run the command of this process. What goes wrong is told in a sentence, not a trace."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="chatbot")
    except (ConfigurationError, InputError) as error:
        complain(error.in_full)
        sys.exit(MISUSED)
    except ChatbotError as error:
        complain(error.in_full)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the outermost layer
        _tell_fault(error)
        sys.exit(FAILED)
    sys.exit(0)


def _tell_fault(error: Exception) -> None:
    import logging

    logging.getLogger(__name__).error("the command failed", exc_info=error)
    complain(
        f"Something went wrong on our side ({type(error).__name__}). "
        "Try again with LOG_LEVEL=DEBUG to see the details."
    )


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - called by typer
    if wanted:
        from importlib.metadata import version

        typer.echo(f"chatbot {version('ragflow-chatbot')}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that belong to no command."""


@app.command()
def chat(
    *,
    session: SessionName = None,
    assistant: AssistantNames = None,
    route: RouteName = None,
    language: LanguageName = None,
    user: UserName = None,
) -> None:
    """Talk with the chatbot. The conversation goes on at the next start.

    Type /help there for what else can be done. Ctrl-C stops an answer, Ctrl-D leaves.
    """
    settings = load_settings()
    from serving.cli.chat import chat as run_chat

    run_chat(
        settings,
        {
            "session_id": session,
            "user_id": user,
            "assistants": assistant,
            "route": route,
            "language": language,
        },
    )


@app.command()
def ask(  # noqa: PLR0913 - one for each option
    question: Annotated[
        str, typer.Argument(help='The question, or "-" to read it from stdin.')
    ],
    *,
    image: ImageNames = None,
    as_json: AsJson = False,
    session: SessionName = None,
    assistant: AssistantNames = None,
    route: RouteName = None,
    language: LanguageName = None,
    user: UserName = None,
) -> None:
    """Ask one question and print the answer with its sources.

    Exit codes: 0 answered, 1 the turn failed, 2 wrong usage or configuration, 130 interrupted.
    """
    if question == "-":
        question = sys.stdin.read()
    if not question.strip():
        message = 'There is no question. Write it in quotation marks: chatbot ask "…"'
        raise InputError(message)
    settings = load_settings()
    from serving.cli.ask import ask as run_ask
    from serving.cli.pictures import picture

    answered = run_ask(
        settings,
        question,
        {
            "images": [picture(each) for each in image or ()],
            "session_id": session,
            "user_id": user,
            "assistants": assistant,
            "route": route,
            "language": language,
        },
        as_json=as_json,
    )
    raise typer.Exit(0 if answered else FAILED)


@app.command(short_help="Show how an answer came about.")
def why(
    turn: Annotated[
        str | None, typer.Argument(help="The id of the turn. [default: the last one]")
    ] = None,
    *,
    session: Annotated[
        str | None,
        typer.Option(
            callback=checked_session,
            metavar="NAME",
            help="The conversation it is in. [default: DEFAULT_SESSION_ID]",
        ),
    ] = None,
    as_json: AsJson = False,
    user: UserName = None,
) -> None:
    """Show how an answer came about: route, query, passages, times, tokens, trace."""
    settings = load_settings()
    from serving.cli.sessions import explain_turn

    explain_turn(settings, session, turn, as_json=as_json, user=user)


@app.command(short_help="List the answers that readers found bad.")
def feedback(  # noqa: PLR0913 - one for each option
    *,
    good: Annotated[bool, typer.Option("--good", help="The good ones instead.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Good and bad ones.")] = False,
    days: Annotated[
        float | None,
        typer.Option(min=0, metavar="NUMBER", help="Only those of the last so many days."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How many.")] = 50,
    before: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Go on behind it; the page before ends with one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the answers that readers found bad, the latest first, of all users."""
    settings = load_settings()
    from serving.cli.feedback import list_feedback

    thumb: Thumb | None = None if everything else "up" if good else "down"
    list_feedback(settings, thumb, days=days, limit=limit, before=before, as_json=as_json)


@app.command(short_help="Bring files into the knowledge base.")
def ingest(
    files: Annotated[list[Path], typer.Argument(help="Files, or folders of files.")],
    *,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where they belong; created if missing. By default named like the folder.",
        ),
    ] = None,
    assistant: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="In RAGFlow: an assistant that shall know them."),
    ] = None,
) -> None:
    """Bring files into the knowledge base and wait until they can be searched.

    Into RAGFlow where it is set, else into a sub-folder of KNOWLEDGE_DIR.
    """
    settings = load_settings()
    from serving.cli.ingest import ingest as run_ingest

    complete = run_ingest(settings, files, dataset=dataset, assistant=assistant)
    raise typer.Exit(0 if complete else FAILED)


@app.command(short_help="Serve the web page and the HTTP API alone.")
def serve(
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen on.")
    ] = "127.0.0.1",
    port: Port = 8000,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen beyond this machine although nobody signs in."),
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, max=64, metavar="NUMBER", help="How many processes answer.")
    ] = 1,
) -> None:
    """Serve the web page and the HTTP API, without the LangGraph server."""
    from serving.cli.serve import serve as run_serve

    run_serve(host, port, workers, insecure=insecure)


@app.command(short_help="Serve the bot as an MCP server on stdin and stdout.")
def mcp() -> None:
    """Serve the bot to other programs' models, as an MCP server on stdin and stdout."""
    settings = load_settings()
    from serving.cli.mcp import serve_on_stdio

    serve_on_stdio(settings)


@app.command()
def dev(*, port: Port = 2024) -> None:
    """Serve everything on the LangGraph server. `make run` starts this."""
    from serving.cli.dev import dev as run_dev

    raise typer.Exit(run_dev(port))


@app.command(short_help="Check every setting and every service.")
def doctor(*, as_json: AsJson = False) -> None:
    """Check every setting and every service, and say what to do about what is wrong.

    Exit code 1 when something that is configured does not work.
    """
    from serving.cli.doctor import examine

    raise typer.Exit(0 if examine(as_json=as_json) else FAILED)


app.command("eval", short_help="Measure the chatbot with labelled questions.")(evaluate)
