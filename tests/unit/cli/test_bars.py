"""Bars for files that are brought in: one each, one for all, and lines in a pipe."""

import io
from dataclasses import dataclass

from rich.console import Console

from serving.cli.bars import Bars


@dataclass(frozen=True)
class Step:
    name: str
    state: str
    fraction: float = 0.0
    message: str = ""


STEPS = [
    Step("a.pdf", "copying"),
    Step("a.pdf", "reading", 0.5),
    Step("[b].pdf", "reading", 0.5),
    Step("a.pdf", "done", 1.0),
    Step("[b].pdf", "failed"),
]


def shown(*, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=80, _environ={})
    with Bars(console, 3) as bars:
        for step in STEPS:
            bars.show(step)
    return file.getvalue()


def test_a_terminal_shows_a_bar_for_each_file_and_one_for_all() -> None:
    text = shown(terminal=True)

    assert "all files" in text
    assert "2 of 3" in text


def test_a_pipe_gets_a_line_for_each_file_that_is_ready() -> None:
    assert shown(terminal=False) == "a.pdf: done\n[b].pdf: failed\n"
