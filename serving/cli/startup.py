"""What a command does first: read the settings, and take the log out of the way."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chatbot.settings import Settings

LOG_FILE = "chatbot.log"


def load_settings() -> "Settings":
    """Return the settings, with the log of this process kept aside.

    Raises:
        ConfigurationError: A setting is wrong.
    """
    from chatbot.settings import Settings

    settings = Settings.load()
    keep_log_aside(settings)
    return settings


def keep_log_aside(settings: "Settings") -> None:
    """Write the log to a file in the data folder; with `LOG_LEVEL=DEBUG` to stderr.

    Where there is no such file, stderr gets what is at least a warning.
    """
    from chatbot.logs import configure_logging, log_to_file
    from serving.cli.traces import tell_of_traces

    if settings.log_level == "DEBUG":
        configure_logging(settings)
        return
    if (folder := settings.data_dir) is not None:
        # One that cannot be written is named by `chatbot doctor`.
        with suppress(OSError):
            log_to_file(settings, folder / LOG_FILE)
            tell_of_traces()
            return
    level = "WARNING" if settings.log_level == "INFO" else settings.log_level
    configure_logging(settings.model_copy(update={"log_level": level}))
