"""Shows the events of a turn as they come: live in a terminal, as plain text in a pipe."""

import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.theme import Theme

from chatbot.events import Event
from serving.cli.reply import Reply, source_line
from serving.cli.words import complain, in_one_line, plain

PIPE_WIDTH = 1000
EXAMINED = ("model_auth", "model_connection", "model_protocol", "model_server", "model_timeout")
_THEME = Theme({"markdown.code": "bold", "markdown.code_block": ""})


class View(Protocol):
    """Shows one turn. Used as a context manager; `reply` is what has come so far."""

    reply: Reply

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave what was shown in a complete state."""
        ...

    def show(self, event: Event) -> None:
        """Show one event."""
        ...


def open_console() -> Console:
    """Return a console on stdout that adds nothing of its own to the text."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH  # lines in a pipe are not broken
    return Console(highlight=False, markup=False, emoji=False, width=width, theme=_THEME)


def view_of_turn(console: Console) -> View:
    """Return the view that suits the console."""
    can_redraw = console.is_terminal and not console.is_dumb_terminal
    if not can_redraw:
        return PlainView()
    from serving.cli.live_view import LiveView  # noqa: PLC0415 - what draws Markdown loads slowly

    return LiveView(console)


class PlainView:
    """Writes the answer as it comes, then its sources, without any control code."""

    def __init__(self) -> None:
        self.reply = Reply()
        self._at_line_start = True

    def __enter__(self) -> Self:
        """See `View`."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """See `View`."""
        if not self._at_line_start:
            self._write("\n")
        if self.reply.citations:
            lines = [source_line(citation) for citation in self.reply.citations]
            self._write("\nSources:\n" + "".join(f"{line}\n" for line in lines))
        tell_trouble(self.reply)

    def show(self, event: Event) -> None:
        """See `View`."""
        self.reply.add(event)
        if event["type"] == "content":
            self._write(plain(event["data"]))

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_line_start = text.endswith("\n")


def tell_trouble(reply: Reply) -> None:
    """Say on stderr what failed in the turn, or did not work as it should."""
    if reply.error is not None:
        complain(_failure(reply))
        return
    for sentence in reply.degraded:
        complain(f"Note: {sentence}")
    if reply.finish_reason == "length":
        complain("Note: the answer was cut at the model's limit.")


def _failure(reply: Reply) -> str:
    error = reply.error or {}
    message, wait = in_one_line(str(error.get("message", ""))), error.get("retry_after")
    again = f" Try again in {wait:.0f} s." if wait and "again" not in message else ""
    kept = " What was said so far is kept." if error.get("partial_answer") else ""
    more = " `chatbot doctor` says more." if error.get("code") in EXAMINED else ""
    return f"{message}{again}{kept}{more}"
