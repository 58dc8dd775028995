"""Reads what a person types, with the lines of earlier sessions where the system can."""

import contextlib
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

try:
    import readline
except ImportError:  # not on every system
    readline = None  # type: ignore[assignment]

KEPT_LINES = 1000
PROMPT = "> "
CONTINUED = "… "


class Lines:
    """The input of one conversation. `file` keeps its lines, readable by their owner only."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._interactive = sys.stdin.isatty() and sys.stdout.isatty()

    def __enter__(self) -> Self:
        """Load the lines of earlier conversations."""
        if self._interactive and self._file is not None and readline is not None:
            with contextlib.suppress(OSError):
                readline.read_history_file(self._file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Keep the lines."""
        if self._interactive and self._file is not None and readline is not None:
            readline.set_history_length(KEPT_LINES)
            with contextlib.suppress(OSError):
                self._file.touch(mode=0o600)
                readline.write_history_file(self._file)

    def read(self) -> str:
        """Return what was typed; a line that ends with a backslash goes on in the next one.

        Raises:
            EOFError: There is no more.
            KeyboardInterrupt: The person gave the line up.
        """
        text = self._line(PROMPT)
        while text.endswith("\\"):
            text = text[:-1] + "\n"
            with contextlib.suppress(EOFError):  # what there is counts
                text += self._line(CONTINUED)
        return text.strip()

    def _line(self, prompt: str) -> str:
        return input(prompt if self._interactive else "")
