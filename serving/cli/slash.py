"""The commands inside a conversation, such as `/new`."""

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

from chatbot.errors import InputError
from serving.cli.conversation import Conversation
from serving.cli.pictures import picture, save_pictures
from serving.cli.reply import source_line
from serving.cli.tables import plain_table, table_of_sessions
from serving.cli.why import explanation
from serving.cli.words import complain, in_one_line, plain

LISTED = 20
KNOWS_LENGTH = 80


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
    conversation.tell(
        "\nA line that ends with \\ goes on in the next one. "
        "Ctrl-C stops an answer, Ctrl-D leaves."
    )


def _new(conversation: Conversation, name: str) -> None:
    made = f"{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(2)}"
    conversation.switch(name or made)


def _sessions(conversation: Conversation, choice: str) -> None:
    listed = conversation.bot.sessions(user_id=conversation.user_id, limit=LISTED)
    if choice:
        number = int(choice) if choice.isdecimal() else 0
        known = 0 < number <= len(listed)
        conversation.switch(listed[number - 1].session_id if known else choice)
    elif listed:
        conversation.console.print(
            table_of_sessions(listed, current=conversation.session_id, numbered=True)
        )
        conversation.tell("/sessions NUMBER or NAME goes on there.")
    else:
        conversation.console.print("There are no sessions yet.")


def _sources(conversation: Conversation, _: str) -> None:
    citations = conversation.last_turn().record.get("citations") or ()
    if not citations:
        conversation.console.print("The last answer cites nothing.")
    for citation in citations:
        conversation.console.print(source_line(citation), style="bold")
        conversation.console.print(plain(citation["text"]).strip())
        if citation.get("url"):
            conversation.console.print(plain(citation["url"]), style="dim")
        conversation.console.print()


def _why(conversation: Conversation, _: str) -> None:
    last = conversation.last_turn()
    session_id, user_id = conversation.session_id, conversation.user_id
    found = conversation.bot.why(last.id, session_id=session_id, user_id=user_id)
    conversation.console.print(explanation(found))


def _regenerate(conversation: Conversation, _: str) -> None:
    conversation.regenerate()


def _edit(conversation: Conversation, question: str) -> None:
    if not question:
        message = "Write the other question behind /edit."
        raise InputError(message)
    conversation.edit(question)


def _image(conversation: Conversation, name: str) -> None:
    if name == "none":
        conversation.images.clear()
    elif name:
        image = picture(name)
        if isinstance(image, Path) and not image.is_file():
            message = f"There is no file {image}."
            raise InputError(message)
        conversation.images.append(image)
    images = conversation.images
    shown = [image.name if isinstance(image, Path) else image for image in images]
    names = ", ".join(in_one_line(name, 60) for name in shown)
    conversation.tell(f"The next question shows: {names or 'no image'}.")


def _save(conversation: Conversation, folder: str) -> None:
    files = save_pictures(
        conversation.bot,
        conversation.last_turn().answer,
        Path(folder or ".").expanduser(),
        user_id=conversation.user_id,
    )
    for file in files:
        conversation.console.print(str(file))


def _assistant(conversation: Conversation, name: str) -> None:
    known = conversation.bot.assistants()
    if name in {"", "all"}:
        if name:
            conversation.choices["assistants"] = None
        chosen = conversation.choices.get("assistants") or ()
        table = plain_table("", "ASSISTANT", "KNOWS")
        for each in known:
            mark = "*" if each.name in chosen or each.id in chosen else ""
            cells = (mark, in_one_line(each.name), in_one_line(each.description, KNOWS_LENGTH))
            table.add_row(*map(Text, cells))
        conversation.console.print(table)
        if not chosen:
            conversation.tell("All may be asked. /assistant NAME asks one, /assistant all all.")
        return
    found = [each for each in known if name.casefold() in f"{each.id} {each.name}".casefold()]
    if len(found) != 1:
        words = "Several assistants are" if found else "No assistant is"
        message = f"{words} called {name}; /assistant lists them."
        raise InputError(message)
    conversation.choices["assistants"] = [found[0].name]
    conversation.tell(f"From now on {in_one_line(found[0].name)} is asked.")


def _quit(conversation: Conversation, _: str) -> None:
    conversation.goes_on = False


class _Command(NamedTuple):
    run: Callable[[Conversation, str], None]
    words: str


COMMANDS: Mapping[str, _Command] = {
    "/help": _Command(_help, "show this"),
    "/new": _Command(_new, "begin a new session, by the NAME that follows if any"),
    "/sessions": _Command(_sessions, "list the sessions; NUMBER or NAME goes on in one"),
    "/assistant": _Command(_assistant, "list the assistants; NAME asks that one, all all"),
    "/image": _Command(
        _image, "show the FILE or address to the model next; none takes it back"
    ),
    "/save": _Command(_save, "save the images of the last answer, to the FOLDER that follows"),
    "/sources": _Command(_sources, "show the passages that the last answer cites"),
    "/why": _Command(_why, "show how the last answer came about"),
    "/regenerate": _Command(_regenerate, "answer the last question again"),
    "/edit": _Command(_edit, "ask the QUESTION that follows in place of the last one"),
    "/quit": _Command(_quit, "leave"),
}
