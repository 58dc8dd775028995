"""Prints what was found, for people."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rich.text import Text

from serving.cli.doctor.findings import Finding, State
from serving.cli.doctor.values import Value
from serving.cli.tables import plain_table
from serving.cli.views import open_console
from serving.cli.words import in_one_line

LISTED = 5  # of a series

_SIGNS: Mapping[State, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "off": ("not set", "dim"),
    "warn": ("warning", "yellow"),
    "fail": ("FAILS", "bold red"),
}


def _shortened(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Give the findings, and of each series the first ones with the number of the others."""
    sizes = Counter(each.series for each in findings)
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.series] += 1
        if not finding.series or shown[finding.series] <= LISTED:
            yield finding
        elif shown[finding.series] == sizes[finding.series]:
            detail = f"{sizes[finding.series] - LISTED} more {finding.series}."
            yield replace(
                finding, detail=detail, advice="chatbot doctor --json names them all."
            )


def print_report(values: Sequence[Value], findings: Sequence[Finding]) -> None:
    """Print the settings, then each part and what to do about it."""
    console = open_console()
    if values:
        table = plain_table("SETTING", "VALUE", "FROM")
        for value in values:
            style = "dim" if value.source == "default" else ""
            cells = (value.variable, in_one_line(value.value), value.source)
            table.add_row(*(Text(cell) for cell in cells), style=style)
        console.print(table)
        console.print()
    table = plain_table("PART", "STATE", "FOUND")
    for finding in _shortened(findings):
        words, style = _SIGNS[finding.state]
        found = Text(in_one_line(finding.detail))
        if finding.advice:
            found.append(f"\n→ {in_one_line(finding.advice)}", style="cyan")
        table.add_row(Text(finding.part), Text(words, style=style), found)
    console.print(table)
