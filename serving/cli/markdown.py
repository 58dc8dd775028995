"""Markdown that is shown while it is written."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text

# HTML stays text: a tag in an answer is shown, not swallowed.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


class _PlainHeading(Heading):
    """A heading that begins at the margin, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the words of the heading, bold."""
        del console, options
        self.text.justify = "left"
        yield self.text


class AnswerMarkdown(Markdown):
    """The Markdown of an answer."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, hyperlinks=False)
        self.parsed = _PARSER.parse(text)


def split_finished(text: str) -> tuple[str, str]:
    """Return the blocks that no further text can change, and the one still being written."""
    starts = [
        token.map[0]
        for token in _PARSER.parse(text)
        if token.level == 0 and token.map and token.nesting >= 0
    ]
    if len(starts) < 2:  # noqa: PLR2004 - a single block is the one being written
        return "", text
    lines = text.split("\n")
    return "\n".join(lines[: starts[-1]]), "\n".join(lines[starts[-1] :])


def newest_lines(text: str, console: Console, height: int) -> Text:
    """Return the end of the rendered Markdown, as much as `height` lines hold."""
    options = console.options.update(height=None)
    lines = console.render_lines(AnswerMarkdown(text), options, pad=False)
    shown = Text(end="")
    for number, line in enumerate(lines[-height:]):
        if number:
            shown.append("\n")
        for segment in line:
            shown.append(segment.text, segment.style)
    return shown
