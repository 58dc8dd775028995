"""The commands inside a conversation, such as `/new`."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from rich.console import Console

from chatbot.domain import checked_id
from graphs.conversation import Choices
from graphs.synchronous import SyncChatbot
from serving.cli.reply import Reply, source_line
from serving.cli.tables import table_of_sessions
from serving.cli.words import complain, plain

LISTED = 20


@dataclass(kw_only=True)
class Conversation:
    """What is being talked about where, and the last reply."""

    bot: SyncChatbot
    console: Console
    session_id: str
    choices: Choices
    reply: Reply = field(default_factory=Reply)
    goes_on: bool = True

    def switch(self, session_id: str) -> None:
        """Go on in another session.

        Raises:
            InputError: The name has the wrong form.
        """
        self.session_id = checked_id(session_id, "session id")
        self.reply = Reply()
        self.console.print(f"Session {session_id}.", style="dim")


def obey(conversation: Conversation, text: str) -> None:
    """Do what a line that begins with a slash asks for.

    Raises:
        ChatbotError: It could not be done.
    """
    name, _, rest = text.partition(" ")
    if name not in COMMANDS:
        complain(f"There is no {name}; /help shows what there is.")
        return
    COMMANDS[name].run(conversation, rest.strip())


def _help(conversation: Conversation, _: str) -> None:
    width = max(map(len, COMMANDS))
    for name, command in COMMANDS.items():
        conversation.console.print(f"{name:<{width}}  {command.words}")
    conversation.console.print(
        "\nA line that ends with \\ goes on in the next one. "
        "Ctrl-C stops an answer, Ctrl-D leaves.",
        style="dim",
    )


def _new(conversation: Conversation, name: str) -> None:
    made = f"{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(2)}"
    conversation.switch(name or made)


def _sessions(conversation: Conversation, choice: str) -> None:
    listed = conversation.bot.sessions(limit=LISTED)
    if choice:
        number = int(choice) if choice.isdecimal() else 0
        known = 0 < number <= len(listed)
        conversation.switch(listed[number - 1].session_id if known else choice)
    elif listed:
        conversation.console.print(
            table_of_sessions(listed, current=conversation.session_id, numbered=True)
        )
        conversation.console.print("/sessions NUMBER or NAME goes on there.", style="dim")
    else:
        conversation.console.print("There are no sessions yet.")


def _sources(conversation: Conversation, _: str) -> None:
    if not conversation.reply.citations:
        conversation.console.print("The last answer cites nothing.")
    for citation in conversation.reply.citations:
        conversation.console.print(source_line(citation), style="bold")
        conversation.console.print(plain(citation["text"]).strip())
        if citation.get("url"):
            conversation.console.print(plain(citation["url"]), style="dim")
        conversation.console.print()


def _quit(conversation: Conversation, _: str) -> None:
    conversation.goes_on = False


class _Command(NamedTuple):
    run: Callable[[Conversation, str], None]
    words: str


COMMANDS: Mapping[str, _Command] = {
    "/help": _Command(_help, "show this"),
    "/new": _Command(_new, "begin a new session, by the NAME that follows if any"),
    "/sessions": _Command(_sessions, "list the sessions; NUMBER or NAME goes on in one"),
    "/sources": _Command(_sources, "show the passages that the last answer cites"),
    "/quit": _Command(_quit, "leave"),
}
