"""The commands and their options. What a command needs is imported when it runs."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

import io
import sys
from typing import Annotated, Literal, NoReturn

import typer

from chatbot.errors import ChatbotError, ConfigurationError, InputError
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
sessions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
knowledge = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(sessions, name="sessions", help="List, show and clear conversations.")
app.add_typer(knowledge, name="knowledge", help="See what the knowledge base holds and finds.")

SessionName = Annotated[
    str | None,
    typer.Option(help="The conversation to go on with. [default: DEFAULT_SESSION_ID]"),
]
AssistantNames = Annotated[
    list[str] | None,
    typer.Option("--assistant", "-a", help="Ask this assistant. Repeat it to ask several."),
]
RouteName = Annotated[
    Literal["knowledge_base", "general_chat"] | None,
    typer.Option(help="Search the knowledge base, or do not, whatever the question is."),
]
LanguageName = Annotated[
    str | None,
    typer.Option(
        help='The language of the answer, such as "Chinese". [default: the question\'s]'
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")]


def run() -> NoReturn:
    """Run the command of this process. What goes wrong is told in a sentence, not a trace."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="chatbot")
    except (ConfigurationError, InputError) as error:
        complain(error.message)
        sys.exit(MISUSED)
    except ChatbotError as error:
        complain(error.message)
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
) -> None:
    """Talk with the chatbot. The conversation goes on at the next start.

    Type /help there for what else can be done. Ctrl-C stops an answer, Ctrl-D leaves.
    """
    from serving.cli.chat import chat as run_chat

    run_chat(
        {
            "session_id": session,
            "assistants": assistant,
            "route": route,
            "language": language,
        }
    )


@app.command()
def ask(  # noqa: PLR0913 - one for each option
    question: Annotated[
        str, typer.Argument(help='The question, or "-" to read it from stdin.')
    ],
    *,
    as_json: AsJson = False,
    session: SessionName = None,
    assistant: AssistantNames = None,
    route: RouteName = None,
    language: LanguageName = None,
) -> None:
    """Ask one question and print the answer with its sources.

    Exit codes: 0 answered, 1 the turn failed, 2 wrong usage or configuration, 130 interrupted.
    """
    from serving.cli.ask import ask as run_ask

    if question == "-":
        question = sys.stdin.read().strip()
    if not question:
        message = 'There is no question. Write it in quotation marks: chatbot ask "…"'
        raise InputError(message)
    answered = run_ask(
        question,
        {
            "session_id": session,
            "assistants": assistant,
            "route": route,
            "language": language,
        },
        as_json=as_json,
    )
    raise typer.Exit(0 if answered else FAILED)


@app.command()
def serve(
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen beyond this machine although nobody signs in."),
    ] = False,
) -> None:
    """Serve the web page and the HTTP API, without the LangGraph server."""
    from serving.cli.serve import serve as run_serve

    run_serve(host, port, insecure=insecure)


@app.command()
def dev(*, port: Port = 2024) -> None:
    """Serve everything on the LangGraph server. `make run` starts this."""
    from serving.cli.dev import dev as run_dev

    raise typer.Exit(run_dev(port))


@app.command()
def doctor(*, as_json: AsJson = False) -> None:
    """Check every setting and every service, and say what to do about what is wrong.

    Exit code 1 when something that is configured does not work.
    """
    from serving.cli.doctor import examine

    raise typer.Exit(0 if examine(as_json=as_json) else FAILED)


@sessions.command("list")
def list_sessions(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the conversations, the latest first."""
    from serving.cli import sessions as commands

    commands.list_sessions(limit, as_json=as_json)


@sessions.command("show")
def show_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many of its newest turns.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Print a conversation."""
    from serving.cli import sessions as commands

    commands.show_session(session, limit, as_json=as_json)


@sessions.command("clear")
def clear_session(
    session: Annotated[str, typer.Argument(help="The name of the session.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget a conversation. This cannot be taken back."""
    from serving.cli import sessions as commands

    if not yes:
        typer.confirm(f"Forget everything that was said in {session}?", abort=True)
    commands.clear_session(session)


@knowledge.command("list")
def list_assistants(*, as_json: AsJson = False) -> None:
    """List the assistants and what they know."""
    from serving.cli import knowledge as commands

    commands.list_assistants(as_json=as_json)


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
    from serving.cli import knowledge as commands

    commands.search(query, assistant or [], limit, as_json=as_json)
