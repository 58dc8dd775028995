"""The options that several commands have."""

from typing import Annotated, Literal

import typer

from chatbot.domain import checked_id


def checked_session(name: str | None) -> str | None:
    """Take a session's name that has the form of one."""
    return None if name is None else checked_id(name, "session id")


def _checked_user(name: str | None) -> str | None:
    return None if name is None else checked_id(name, "user id", slash=True)


SessionName = Annotated[
    str | None,
    typer.Option(
        callback=checked_session,
        metavar="NAME",
        help="The conversation to go on with. [default: DEFAULT_SESSION_ID]",
    ),
]
UserName = Annotated[
    str | None,
    typer.Option(
        "--user",
        callback=_checked_user,
        metavar="NAME",
        help="Whose conversations. [default: of those who did not sign in]",
    ),
]
AssistantNames = Annotated[
    list[str] | None,
    typer.Option(
        "--assistant",
        "-a",
        metavar="NAME",
        help="Ask this assistant. Repeat it to ask several.",
    ),
]
RouteName = Annotated[
    Literal["knowledge_base", "general_chat"] | None,
    typer.Option(help="Search the knowledge base, or do not, whatever the question is."),
]
LanguageName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help='The language of the answer, such as "Chinese". [default: the question\'s]',
    ),
]
ImageNames = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        "-i",
        metavar="FILE",
        help="Show the model this image: a file, or an https address. Repeat it for several.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="NUMBER", help="The port to listen on.")
]
