"""Prints what was found, for people."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from serving.cli.doctor.findings import Finding, State
from serving.cli.doctor.values import Value
from serving.cli.tables import plain_table
from serving.cli.views import open_console
from serving.cli.words import in_one_line

_SIGNS: Mapping[State, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "off": ("not set", "dim"),
    "warn": ("warning", "yellow"),
    "fail": ("FAILS", "bold red"),
}


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
    for finding in findings:
        words, style = _SIGNS[finding.state]
        found = Text(in_one_line(finding.detail))
        if finding.advice:
            found.append(f"\n→ {in_one_line(finding.advice)}", style="cyan")
        table.add_row(Text(finding.part), Text(words, style=style), found)
    console.print(table)
