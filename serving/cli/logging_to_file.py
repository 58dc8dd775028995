"""Where the log of a command in the terminal goes: away from the conversation."""

from chatbot.logs import configure_logging, log_to_file
from chatbot.settings import Settings

LOG_FILE = "chatbot.log"


def keep_log_aside(settings: Settings) -> None:
    """Write the log to a file in the data folder; with `LOG_LEVEL=DEBUG` to stderr."""
    if settings.log_level != "DEBUG":
        try:
            log_to_file(settings, settings.path(settings.chatbot_data_dir) / LOG_FILE)
        except OSError:
            pass  # the data folder cannot be written: `chatbot doctor` says so
        else:
            return
    configure_logging(settings)
