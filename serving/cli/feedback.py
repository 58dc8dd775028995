"""`chatbot feedback`: what readers think of the answers, for those who run the chatbot."""

import shlex
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from chatbot.domain import Thumb
from chatbot.ratings import RatedTurn
from chatbot.settings import Settings
from serving.cli.sessions import QUOTED, with_bot
from serving.cli.tables import plain_table
from serving.cli.views import open_console
from serving.cli.words import complain, in_one_line, print_json

SIGNS = {"up": "+", "down": "-"}
NAME_LENGTH = 40


def list_feedback(  # noqa: PLR0913 - one for each option
    settings: Settings,
    thumb: Thumb | None,
    *,
    days: float | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """Print the turns with this thumb, or any, and where the next page begins.

    Raises:
        InputError: `before` is no cursor.
    """
    found = with_bot(
        settings,
        lambda bot: bot.feedback(thumb, days=days, limit=limit, before=before),
        lists=True,
    )
    if as_json:
        print_json([_as_json(each) for each in found])
        return
    console = open_console()
    for each in found:
        when, sign = (
            f"{each.rated_at.astimezone():%Y-%m-%d %H:%M}",
            SIGNS[_given(each)["thumb"]],
        )
        whose = in_one_line(each.session.user_id, NAME_LENGTH)
        where = in_one_line(each.session.session_id, NAME_LENGTH)
        console.print(Text(f"{sign} {when}  {whose}  {where}  {each.turn.id}", style="dim"))
        lines = plain_table("", "")
        lines.show_header = False
        lines.add_row(Text("question", style="dim"), Text(in_one_line(each.turn.question)))
        lines.add_row(
            Text("answer", style="dim"), Text(in_one_line(each.turn.answer, 2 * QUOTED))
        )
        if comment := _given(each).get("comment"):
            lines.add_row(Text("comment", style="dim"), Text(in_one_line(str(comment))))
        console.print(lines)
        console.print()
    if not found:
        complain("There is no more feedback." if before else "There is no such feedback yet.")
    elif len(found) == limit:
        complain(f"For those behind them: --before {shlex.quote(found[-1].cursor)}")


def _given(rated: RatedTurn) -> Mapping[str, Any]:
    given: Mapping[str, Any] = rated.turn.record["feedback"]
    return given


def _as_json(rated: RatedTurn) -> dict[str, Any]:
    return {
        "user_id": rated.session.user_id,
        "session_id": rated.session.session_id,
        "title": rated.title,
        "turn_id": rated.turn.id,
        "asked_at": rated.turn.started_at.isoformat(),
        "rated_at": rated.rated_at.isoformat(),
        "thumb": _given(rated)["thumb"],
        "comment": _given(rated).get("comment"),
        "question": rated.turn.question,
        "answer": rated.turn.answer,
        "trace_id": rated.turn.record.get("trace_id"),
        "cursor": rated.cursor,
    }
