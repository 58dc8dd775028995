"""Shows the events of a turn as they come: live in a terminal, as plain text in a pipe."""

import sys
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from rich.theme import Theme

from chatbot.events import Event
from serving.cli.markdown import rendered_lines, split_finished
from serving.cli.reply import Reply, source_line
from serving.cli.words import complain, in_one_line, plain

FRAMES_PER_SECOND = 12
PIPE_WIDTH = 1000
_THEME = Theme({"markdown.code": "bold", "markdown.code_block": ""})
_STAGES = {
    "loading": "reading the conversation",
    "routing": "deciding where to look",
    "rewriting": "making the question clear",
    "searching": "searching",
    "answering": "answering",
}


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
    return LiveView(console) if can_redraw else PlainView()


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


class LiveView:
    """Shows the stage on a line that goes away, and the answer as Markdown.

    Only the block being written is drawn again; what is finished scrolls up for good. So
    nothing flickers, and an answer may be longer than the screen.
    """

    def __init__(self, console: Console) -> None:
        self.reply = Reply()
        self._console = console
        self._stage: RenderableType = Text("")
        self._block = ""
        self._blocks_printed = 0
        # The view itself is what is drawn: so each drawing shows the newest state, also the one
        # that follows when a finished block is printed above it.
        self._live = Live(
            self,
            console=console,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        """See `View`."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """See `View`."""
        rest, self._block = self._block, ""
        self._live.stop()
        self._print_block(rest)
        if self.reply.citations:
            self._console.print()
            for citation in self.reply.citations:
                self._console.print(source_line(citation), style="dim")
        tell_trouble(self.reply)

    def show(self, event: Event) -> None:
        """See `View`."""
        self.reply.add(event)
        if event["type"] == "stage":
            self._stage = Spinner("dots", Text(_stage_words(event["data"]), style="dim"))
        elif event["type"] == "content":
            self._stage = Text("")
            text = plain(event["data"])
            self._block += text
            if "\n" in text:
                finished, self._block = split_finished(self._block)
                self._print_block(finished)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is not final yet: the stage, or the block that is being written."""
        del options
        if not self._block.strip():
            yield self._stage
            return
        if self._blocks_printed:
            yield Text("")
        height = max(1, console.height - 2)
        yield Text("\n").join(rendered_lines(self._block, console)[-height:])

    def _print_block(self, text: str) -> None:
        lines = rendered_lines(text, self._console)
        if lines:
            if self._blocks_printed:
                lines.insert(0, Text(""))
            self._console.print(Text("\n").join(lines))
            self._blocks_printed += 1


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
    return f"{message}{again}{kept}"


def _stage_words(stage: dict[str, str]) -> str:
    words = _STAGES.get(stage["name"], stage["name"])
    detail = in_one_line(stage.get("detail", ""), 60)
    return f"{words}: {detail}" if detail else f"{words} …"
