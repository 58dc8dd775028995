"""Shows a turn in a terminal that can draw again what it shows."""

from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from chatbot.events import Event
from serving.cli.markdown import rendered_lines, split_finished
from serving.cli.reply import Reply, source_line
from serving.cli.views import tell_trouble
from serving.cli.words import in_one_line, plain

FRAMES_PER_SECOND = 12
_STAGES = {
    "loading": "reading the conversation",
    "routing": "deciding where to look",
    "rewriting": "making the question clear",
    "searching": "searching",
    "answering": "answering",
}


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


def _stage_words(stage: dict[str, str]) -> str:
    words = _STAGES.get(stage["name"], stage["name"])
    detail = in_one_line(stage.get("detail", ""), 60)
    return f"{words}: {detail}" if detail else f"{words} …"
