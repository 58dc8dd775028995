"""What a command does first: read the settings, and take the log out of the way."""
# ruff: noqa: PLC0415 - so that `chatbot --help` answers at once

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
    """Write the log to a file in the data folder; with `LOG_LEVEL=DEBUG` to stderr."""
    from chatbot.logs import configure_logging, log_to_file

    if settings.log_level != "DEBUG":
        try:
            log_to_file(settings, settings.path(settings.chatbot_data_dir) / LOG_FILE)
        except OSError:
            pass  # the data folder cannot be written: `chatbot doctor` says so
        else:
            return
    configure_logging(settings)
