"""`chatbot chat`: a conversation in the terminal."""

from typing import cast

from chatbot.domain import Session
from chatbot.errors import ChatbotError
from chatbot.settings import Settings
from graphs.conversation import Choices
from graphs.synchronous import open_chatbot_sync
from serving.cli.conversation import Conversation
from serving.cli.lines import Lines
from serving.cli.signals import exit_on_signals
from serving.cli.slash import obey
from serving.cli.views import open_console
from serving.cli.words import complain
from serving.process import settle


def chat(settings: Settings, choices: Choices) -> None:
    """Talk until the person leaves.

    Raises:
        ChatbotError: A setting or an option is wrong.
    """
    exit_on_signals()
    console = open_console()
    session = Session(session_id=choices.get("session_id") or settings.default_session_id)
    named = cast("Choices", {name: value for name, value in choices.items() if value})
    folder = settings.data_dir
    file = None if folder is None else folder / "input_history"
    with Lines(file) as lines, open_chatbot_sync(settings) as bot:
        settle()
        conversation = Conversation(
            bot=bot,
            console=console,
            session_id=session.session_id,
            choices=named,
        )
        if console.is_terminal:
            conversation.tell(f"{conversation.place()}\n/help shows what you can do.")
        while conversation.goes_on:
            _exchange(conversation, lines)


def _exchange(conversation: Conversation, lines: Lines) -> None:
    """Read one line and do what it asks for."""
    console = conversation.console
    try:
        text = lines.read()
    except EOFError:
        conversation.goes_on = False
        if console.is_terminal:
            console.print()
        return
    except KeyboardInterrupt:
        console.print("\n(/quit or Ctrl-D leaves)", style="dim")
        return
    try:
        if text.startswith("/"):
            obey(conversation, text)
        elif text:
            conversation.ask(text)
    except KeyboardInterrupt:
        complain("(interrupted)")
    except ChatbotError as error:
        complain(error.message)
