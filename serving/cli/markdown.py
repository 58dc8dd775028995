"""Markdown that is shown while it is written."""

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, ImageItem, Markdown, MarkdownElement
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


class _Address(ImageItem):
    """An image as its description and address, since a terminal shows none."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield both."""
        del console, options
        yield Text.assemble(self.text or "image", f" ({self.destination})", end="")


class AnswerMarkdown(Markdown):
    """The Markdown of an answer."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "image": _Address,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
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


def rendered_lines(text: str, console: Console) -> list[Text]:
    """Return the lines of the rendered Markdown, without the blank ones around it."""
    options = console.options.update(height=None)
    lines = [
        Text.assemble(*((segment.text, segment.style or "") for segment in line))
        for line in console.render_lines(AnswerMarkdown(text), options, pad=False)
    ]
    for line in lines:
        line.rstrip()
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines
