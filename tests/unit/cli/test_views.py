import io
from collections.abc import Sequence
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from chatbot.events import Event
from serving.cli.live_view import LiveView
from serving.cli.views import PlainView, View, view_of_turn

CITATION = {
    "number": 1,
    "document": "瓦尔登湖.md",
    "location": "风景",
    "score": 0.987,
    "text": "The pond.",
    "assistant": "Walden",
}
METADATA = {"degraded": [{"part": "history", "reason": "MongoDB cannot be reached."}]}
ERROR = {
    "code": "busy",
    "message": "The session is busy.",
    "retryable": True,
    "retry_after": 3.0,
    "partial_answer": "Half",
}


def turn(*pieces: str, **others: Any) -> Sequence[Event]:
    events: list[Event] = [{"type": "stage", "data": {"name": "routing", "detail": ""}}]
    events += [{"type": "content", "data": piece} for piece in pieces]
    if "error" in others:
        return [*events, {"type": "error", "data": others["error"]}]
    if "citations" in others:
        events.append({"type": "citations", "data": others["citations"]})
    metadata = others.get("metadata", {})
    end = {"full_answer": "".join(pieces), "finish_reason": "stop", "metadata": metadata}
    return [*events, {"type": "end", "data": {**end, **others.get("end", {})}}]


def terminal(height: int = 12) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=30, height=height, color_system=None
    )


def lines_of(console: Console) -> list[str]:
    """Return the screen and what scrolled off it, as the codes leave it."""
    assert isinstance(console.file, io.StringIO)
    lines, row, column = [""], 0, 0
    text = console.file.getvalue()
    position = 0
    while position < len(text):
        character = text[position]
        if text.startswith("\x1b[", position):
            end = next(i for i in range(position + 2, len(text)) if text[i].isalpha())
            amount, code = text[position + 2 : end], text[end]
            if code == "A":
                row -= int(amount or 1)
            elif code == "K":
                lines[row] = ""
            position = end + 1
            continue
        if character == "\n":
            row, column = row + 1, 0
            if row == len(lines):
                lines.append("")
        elif character == "\r":
            column = 0
        else:
            lines[row] = (
                lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            )
            column += 1
        position += 1
    return [line.rstrip() for line in lines]


def show(view: View, events: Sequence[Event]) -> None:
    with view:
        for event in events:
            view.show(event)


def test_pipe_gets_the_text_and_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    show(PlainView(), turn("The **pond** ", "[1]", citations=[CITATION]))
    assert capsys.readouterr() == (
        "The **pond** [1]\n\nSources:\n[1] 瓦尔登湖.md · 风景 · 0.99\n",
        "",
    )


@pytest.mark.parametrize(
    ("events", "said"),
    [
        pytest.param(
            turn("x", metadata=METADATA),
            "Note: history: MongoDB cannot be reached.\n",
            id="degraded",
        ),
        pytest.param(
            turn("x", end={"finish_reason": "length"}),
            "Note: the answer was cut at the model's limit.\n",
            id="cut",
        ),
        pytest.param(
            turn("Half", error=ERROR),
            "The session is busy. Try again in 3 s. What was said so far is kept.\n",
            id="failed",
        ),
    ],
)
def test_trouble_is_told_on_stderr(
    events: Sequence[Event], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show(PlainView(), events)
    assert capsys.readouterr().err == said
    show(LiveView(terminal()), events)
    assert capsys.readouterr() == ("", said)


def test_terminal_keeps_the_answer_and_nothing_else() -> None:
    console = terminal()
    show(
        LiveView(console),
        turn("# Wal", "den\n\nThe **po", "nd** [1]", citations=[CITATION]),
    )
    assert lines_of(console) == [
        "Walden",
        "",
        "The pond [1]",
        "",
        "[1] 瓦尔登湖.md · 风景 · 0.99",
        "",
    ]


def test_answer_may_be_longer_than_the_screen() -> None:
    console = terminal(height=6)
    pieces = [f"- item {number}\n" for number in range(30)] + ["\nThe ", "end."]
    show(LiveView(console), turn(*pieces))
    assert lines_of(console) == [
        *(f" • item {number}" for number in range(30)),
        "",
        "The end.",
        "",
    ]


def test_chinese_lines_fit_the_terminal() -> None:
    console = terminal()
    text = (
        "瓦尔登湖位于马萨诸塞州康科德镇附近，梭罗在湖边住了两年零两个月，写下了《瓦尔登湖》。"
    )
    show(LiveView(console), turn(text[:20], text[20:]))
    lines = lines_of(console)
    assert "".join(lines) == text
    assert max(cell_len(line) for line in lines) <= 30


def test_terminal_that_cannot_redraw_gets_plain_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    show(view_of_turn(terminal()), turn("The **pond**."))
    assert capsys.readouterr().out == "The **pond**.\n"


def test_stopped_answer_stays() -> None:
    console = terminal()
    view = LiveView(console)
    with view:
        for event in turn("One\n\nTw")[:-1]:
            view.show(event)
    assert lines_of(console) == ["One", "", "Tw", ""]


@pytest.mark.parametrize(
    "kind", [pytest.param("pipe", id="pipe"), pytest.param("live", id="live")]
)
def test_nothing_in_an_answer_steers_the_terminal(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console = terminal()
    evil = {**CITATION, "document": "a\x1b[2J\nb.md", "location": "\x9b2J"}
    view: View = PlainView() if kind == "pipe" else LiveView(console)
    show(view, turn("clear\x1b]0;title\x07 \x1b[2J", citations=[evil]))
    assert isinstance(console.file, io.StringIO)
    shown = capsys.readouterr().out + console.file.getvalue()
    assert "a[2J b.md" in shown
    for code in ("\x1b[2J", "\x1b]0", "\x9b", "\x07"):
        assert code not in shown
