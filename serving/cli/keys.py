"""`chatbot keys`: API keys for users, made, listed and revoked."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.text import Text

from chatbot.errors import ConfigurationError, InputError, KnowledgeBaseError
from chatbot.settings import Settings
from serving.auth.keys import ApiKey, create_key, read_keys, revoke_key
from serving.cli.doctor.parts import KNOWLEDGE, only
from serving.cli.tables import plain_table
from serving.cli.views import open_console
from serving.cli.words import complain, in_one_line, print_json


def create(
    settings: Settings, user: str, assistants: list[str] | None, days: float | None
) -> None:
    """Make a key and print it, alone on standard output so that a script can take it.

    Where the knowledge base cannot be asked, nobody knows whether it has these assistants: the
    key is made all the same, with a warning.

    Raises:
        ConfigurationError: AUTH_KEYS_DIR is not set, or cannot be written.
        InputError: The user's name has not the form of an id, or there is no such assistant.
    """
    folder = _folder(settings)
    if assistants:
        _look_up(settings, assistants)
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key = create_key(folder, user, assistants=assistants or None, expires=expires)
    print(key)  # noqa: T201 - the result of the command
    complain(f"The key of {user}. It is not shown again: only its hash is kept, in {folder}.")


def show(settings: Settings, *, as_json: bool) -> None:
    """List the keys, without their secrets."""
    keys = sorted(read_keys(_folder(settings)).by_id.values(), key=lambda key: key.created)
    if as_json:
        print_json([key.model_dump(mode="json", exclude={"sha256"}) for key in keys])
        return
    if not keys:
        complain("There are no keys. `chatbot keys create USER` makes one.")
        return
    table = plain_table("KEY", "USER", "ASSISTANTS", "MADE", "EXPIRES")
    for key in keys:
        names = "all" if key.assistants is None else ", ".join(key.assistants) or "none"
        cells = (key.id, key.user, names, _day(key.created), _expiry(key))
        table.add_row(*(Text(in_one_line(cell)) for cell in cells))
    open_console().print(table)


def revoke(settings: Settings, key_id: str) -> None:
    """Take a key back. A server notices within seconds.

    Raises:
        InputError: There is no such key.
    """
    found = revoke_key(_folder(settings), key_id)
    if found is None:
        message = f"There is no key {key_id}: `chatbot keys list` shows those there are."
        raise InputError(message)
    complain(f"The key {key_id} of {found.user} works no more.")


def _look_up(settings: Settings, names: Sequence[str]) -> None:
    from serving.cli.knowledge import named  # noqa: PLC0415 - heavy
    from serving.cli.sessions import with_bot  # noqa: PLC0415

    alone = only(settings, *KNOWLEDGE)  # a key can be made whatever else is away
    try:
        named(with_bot(alone, lambda bot: bot.assistants()), names)
    except KnowledgeBaseError as error:
        doubted = ", ".join(names)
        complain(f"{error.message} So nobody knows whether there is an assistant {doubted}.")


def _folder(settings: Settings) -> Path:
    if settings.auth_keys_dir is None:
        message = (
            "AUTH_KEYS_DIR is not set, so nobody has to sign in. Set it to a folder for the "
            "keys in .env.local, such as AUTH_KEYS_DIR=.chatbot/keys"
        )
        raise ConfigurationError(message)
    return settings.path(settings.auth_keys_dir)


def _day(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d")


def _expiry(key: ApiKey) -> str:
    if key.expires is None:
        return "never"
    return "expired" if key.expired(datetime.now(UTC)) else _day(key.expires)
