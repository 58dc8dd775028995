"""Why an answer is as it is: the audit record of a turn, for people."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from chatbot.domain import Turn
from graphs.reviews import Explanation
from serving.cli.tables import plain_table
from serving.cli.words import in_one_line

QUOTED = 80
BAR = 30  # columns for the slowest stage


def explanation(found: Explanation) -> RenderableType:
    """Return how the turn went: route, query, passages, times, tokens, trace."""
    turn = found.turn
    facts = plain_table("", "")
    facts.show_header = False
    for name, value in _facts(turn):
        facts.add_row(Text(name, style="dim"), Text(in_one_line(value)))
    if trace := found.trace_url or turn.record.get("trace_id"):
        # Not cut and not folded where it can be helped: people copy it.
        facts.add_row(
            Text("trace", style="dim"), Text(in_one_line(str(trace)), overflow="fold")
        )
    parts: list[RenderableType] = [facts]
    for table in (_stages(turn.record), _passages(turn.record)):
        if table is not None:
            parts += [Text(""), table]
    return Group(*parts)


def _passages(record: Mapping[str, Any]) -> Table | None:
    passages = record.get("passages") or ()
    if not passages:
        return None
    # The numbers in an answer are the places of its passages here.
    cited = {each.get("number") for each in record.get("citations") or ()}
    table = plain_table("CITED", "SCORE", "DOCUMENT", "PASSAGE")
    for number, passage in enumerate(passages, 1):
        where = " · ".join(filter(None, (passage.get("document"), passage.get("location"))))
        cells = (
            f"[{number}]" if number in cited else "",
            f"{passage.get('score') or 0:.2f}",
            in_one_line(where),
            in_one_line(passage["text"], QUOTED),
        )
        table.add_row(*map(Text, cells))
    return table


def _stages(record: Mapping[str, Any]) -> Table | None:
    """Return a small bar chart: how long each stage took."""
    timings: Mapping[str, float] = record.get("timings") or {}
    if not timings:
        return None
    table = plain_table("STAGE", "MS", "")
    table.columns[1].justify = "right"
    longest = max(timings.values()) or 1
    for stage, milliseconds in timings.items():
        bar = "█" * max(1, round(BAR * milliseconds / longest))
        table.add_row(Text(in_one_line(stage)), Text(f"{milliseconds:.0f}"), Text(bar))
    return table


def _facts(turn: Turn) -> Iterator[tuple[str, str]]:
    record = turn.record
    yield "turn", f"{turn.id} ({turn.status}), {turn.started_at.astimezone():%Y-%m-%d %H:%M:%S}"
    if record.get("replaces"):
        yield "in place of", f"turn {record['replaces']}"
    yield "question", turn.question
    for name, value in (record.get("choices") or {}).items():
        chosen = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield "asked for", f"{name.replace('_', ' ')}: {chosen}"
    if turn.intent:
        yield "route", f"{turn.intent}: {record.get('reason') or 'no reason given'}"
    if record.get("query"):
        same = record["query"] == turn.question
        yield "searched for", "the question as it is" if same else record["query"]
    if record.get("assistants"):
        yield "assistants", ", ".join(record["assistants"])
    if found := _found(turn):
        yield "found", found
    if left := _cut(record.get("cut") or {}):
        yield "left out", left
    for entry in record.get("degraded") or ():
        yield "degraded", f"{entry['part']}: {entry['reason']}"
    if error := record.get("error"):
        yield "error", f"{error.get('code')}: {error.get('message')}"
    yield from _work(record)


def _work(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield who answered, with what, and how long it took."""
    for used in record.get("tools") or ():
        failed = " (failed)" if used.get("failed") else ""
        yield "tool", f"{used.get('name')} {used.get('arguments')}{failed}"
    if record.get("model"):
        yield "model", _model(record)
    for attempt in record.get("attempts") or ():
        step = f" ({attempt['step']})" if attempt.get("step") else ""
        yield "tried before", f"{attempt.get('endpoint')}: {attempt.get('kind')}{step}"
    if record.get("finish_reason"):
        yield "ended with", str(record["finish_reason"])
    if usage := _tokens(record.get("usage") or {}):
        yield "tokens", usage
    for call in (record.get("usage") or {}).get("other") or ():
        yield "tokens besides", f"{_tokens(call)}, {call.get('step')}"
    if begun := _begun_early(record):
        yield "begun early", begun
    if record.get("route_early"):
        yield "read early", "the router's call, whose end was not waited for"
    if times := _times(record):
        yield "time", times


def _model(record: Mapping[str, Any]) -> str:
    model, endpoint = record["model"], record.get("endpoint")
    return str(model) if endpoint in {None, "", model} else f"{model} at {endpoint}"


def _found(turn: Turn) -> str:
    """Return why there are no passages, where some were looked for."""
    if turn.intent != "knowledge_base" or turn.record.get("passages"):
        return ""
    if "passages" in (turn.record.get("left_out") or ()):
        return "what was found is too large to be kept with the turn"
    outcomes = {
        "empty": "nothing",
        "unavailable": "nothing: the knowledge base could not be searched, or only in part",
        "forbidden": "nothing: the knowledge base may not be searched",
    }
    return outcomes.get(str(turn.record.get("outcome")), "")


def _cut(cut: Mapping[str, Any]) -> str:
    """Return what had no room in the prompt."""
    words = {"turns": "earlier turns", "passages": "passages", "results": "results of tools"}
    return ", ".join(f"{cut[name]} {words[name]}" for name in words if cut.get(name))


def _begun_early(record: Mapping[str, Any]) -> str:
    """Return what was begun before it was known to be wanted, and whether it was of use."""
    words = {"prefetch": "searches", "head_start": "the answer"}
    return ", ".join(f"{words[name]} ({record[name]})" for name in words if record.get(name))


def _tokens(usage: Mapping[str, Any]) -> str:
    parts = [
        f"{usage[name]} {word}"
        for name, word in (("input_tokens", "read"), ("output_tokens", "written"))
        if usage.get(name) is not None
    ]
    return ", ".join(parts) + (" (estimated)" if parts and usage.get("estimated") else "")


def _times(record: Mapping[str, Any]) -> str:
    parts = []
    if record.get("first_token_ms") is not None:
        parts.append(f"first token after {record['first_token_ms']:.0f} ms")
    if record.get("total_ms") is not None:
        parts.append(f"{record['total_ms']:.0f} ms in all")
    return ", ".join(parts)
