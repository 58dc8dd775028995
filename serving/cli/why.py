"""Why an answer is as it is: the audit record of a turn, for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from chatbot.domain import Turn
from serving.cli.tables import plain_table
from serving.cli.words import in_one_line

QUOTED = 80


def explanation(turn: Turn) -> RenderableType:
    """Return how the turn went: route, query, passages, times, tokens, trace."""
    facts = plain_table("", "")
    facts.show_header = False
    for name, value in _facts(turn):
        facts.add_row(Text(name, style="dim"), Text(in_one_line(value)))
    passages = turn.record.get("passages") or ()
    if not passages:
        return facts
    cited = {each.get("id") or each["text"]: each["number"] for each in _citations(turn)}
    table = plain_table("CITED", "SCORE", "DOCUMENT", "PASSAGE")
    for passage in passages:
        number = cited.get(passage["id"]) or cited.get(passage["text"])
        where = " · ".join(filter(None, (passage["document"], passage.get("location"))))
        cells = (
            f"[{number}]" if number else "",
            f"{passage['score']:.2f}",
            in_one_line(where),
            in_one_line(passage["text"], QUOTED),
        )
        table.add_row(*map(Text, cells))
    return Group(facts, Text(""), table)


def _citations(turn: Turn) -> list[Mapping[str, Any]]:
    return list(turn.record.get("citations") or ())


def _facts(turn: Turn) -> Iterator[tuple[str, str]]:
    record = turn.record
    yield "turn", f"{turn.id} ({turn.status}), {turn.started_at.astimezone():%Y-%m-%d %H:%M:%S}"
    yield "question", turn.question
    if turn.intent:
        yield "route", f"{turn.intent}: {record.get('reason') or 'no reason given'}"
    if record.get("query") and record["query"] != turn.question:
        yield "searched for", record["query"]
    if record.get("assistants"):
        yield "assistants", ", ".join(record["assistants"])
    for entry in record.get("degraded") or ():
        yield "degraded", f"{entry['part']}: {entry['reason']}"
    if error := record.get("error"):
        yield "error", f"{error.get('code')}: {error.get('message')}"
    if record.get("model"):
        yield "model", record["model"]
    if usage := _tokens(record.get("usage") or {}):
        yield "tokens", usage
    if times := _times(record):
        yield "time", times
    if record.get("trace_id"):
        yield "trace", str(record["trace_id"])


def _tokens(usage: Mapping[str, Any]) -> str:
    parts = [
        f"{usage[name]} {word}"
        for name, word in (("input_tokens", "read"), ("output_tokens", "written"))
        if usage.get(name) is not None
    ]
    return ", ".join(parts)


def _times(record: Mapping[str, Any]) -> str:
    parts = []
    if record.get("first_token_ms") is not None:
        parts.append(f"first token after {record['first_token_ms']:.0f} ms")
    if record.get("total_ms") is not None:
        parts.append(f"{record['total_ms']:.0f} ms in all")
    steps = [f"{step} {time:.0f}" for step, time in (record.get("timings") or {}).items()]
    if steps:
        parts.append(f"({', '.join(steps)})")
    return " ".join([", ".join(parts[:2]), *parts[2:]]).strip()
