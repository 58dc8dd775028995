"""The tables that commands print."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from chatbot.domain import SessionSummary
from serving.cli.words import in_one_line

TITLE_LENGTH = 60


def plain_table(*columns: str) -> Table:
    """Return a table without lines, which is easy to read and to cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def table_of_sessions(
    sessions: Sequence[SessionSummary], *, current: str = "", numbered: bool = False
) -> Table:
    """Return the sessions as a table, the current one marked."""
    table = plain_table(
        *(["#"] if numbered else []), "SESSION", "LAST ACTIVE", "TURNS", "TITLE"
    )
    for number, each in enumerate(sessions, 1):
        cells = [
            in_one_line(each.session_id),
            f"{each.last_active.astimezone():%Y-%m-%d %H:%M}",
            str(each.turns),
            in_one_line(each.title, TITLE_LENGTH),
        ]
        style = "bold" if each.session_id == current else ""
        table.add_row(
            *(Text(cell) for cell in ([str(number)] if numbered else []) + cells), style=style
        )
    return table
