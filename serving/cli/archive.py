"""`chatbot sessions export` and `import`: a conversation as a JSON document."""

import json
import sys
from pathlib import Path

from chatbot.errors import InputError
from chatbot.settings import Settings
from serving.cli.sessions import with_bot
from serving.cli.words import complain, print_json

STDIN = "-"


def export(
    settings: Settings, session_id: str, file: Path | None, *, user: str | None = None
) -> None:
    """Write a session as JSON to a file, or to stdout.

    Raises:
        InputError: There is no such session, or the file cannot be written.
    """
    data = with_bot(settings, lambda bot: bot.export(session_id, user_id=user))
    if file is None:
        print_json(data)
        return
    try:
        file.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror}."
        raise InputError(message) from None


def restore(
    settings: Settings, file: str, session_id: str | None, *, user: str | None = None
) -> None:
    """Make a session from such a document.

    Raises:
        InputError: The file is something else, or the session exists with other turns.
    """
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
        data = json.loads(text)
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}."
        raise InputError(message) from None
    except ValueError:
        message = f"{file} is not JSON, as `chatbot sessions export` writes it."
        raise InputError(message) from None
    session = with_bot(
        settings, lambda bot: bot.import_(data, user_id=user, session_id=session_id)
    )
    complain(f"The session is there as {session.session_id}.")
