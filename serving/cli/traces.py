"""Says at the end of a command why its traces did not arrive: most are sent only then."""

import atexit
import logging

from serving.cli.words import complain

LOGGER = "chatbot.traces.delivery"


class _Last(logging.Handler):
    """Keeps the last warning. In the log, which is a file, nobody would look for it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what it says."""
        self._text = record.getMessage()

    def tell(self) -> None:
        """Say it on stderr, if there is something to say."""
        if self._text:
            complain(self._text)


def tell_of_traces() -> None:
    """Have it said when this process ends."""
    last = _Last()
    logging.getLogger(LOGGER).addHandler(last)
    atexit.register(last.tell)
