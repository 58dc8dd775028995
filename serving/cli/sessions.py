"""`chatbot sessions`: the conversations there are."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from chatbot.domain import Turn
from chatbot.settings import Settings
from graphs.conversation import Chatbot, open_chatbot
from serving.cli.markdown import AnswerMarkdown
from serving.cli.reply import source_line
from serving.cli.tables import table_of_sessions
from serving.cli.views import open_console
from serving.cli.words import complain, plain

Result = TypeVar("Result")


def list_sessions(settings: Settings, limit: int, *, as_json: bool) -> None:
    """Print the sessions, the latest first."""
    found = _with_bot(settings, lambda bot: bot.sessions(limit=limit))
    if as_json:
        _print_json(
            [
                {
                    "session_id": each.session_id,
                    "title": each.title,
                    "last_active": each.last_active.isoformat(),
                    "turns": each.turns,
                }
                for each in found
            ]
        )
    elif found:
        open_console().print(table_of_sessions(found))
    else:
        complain("There are no sessions yet.")


def show_session(settings: Settings, session_id: str, limit: int, *, as_json: bool) -> None:
    """Print what was said in a session."""
    turns = _with_bot(settings, lambda bot: bot.turns(session_id, limit=limit))
    if as_json:
        _print_json([_as_json(turn) for turn in turns])
        return
    if not turns:
        complain(f"There is nothing in the session {session_id}.")
    console = open_console()
    for turn in turns:
        console.print(f"> {plain(turn.question)}", style="bold")
        answer = plain(turn.answer)
        console.print(AnswerMarkdown(answer) if console.is_terminal else answer)
        if turn.status != "complete":
            console.print(f"({turn.status})", style="dim")
        for citation in turn.record.get("citations", ()):
            console.print(source_line(citation), style="dim")
        console.print()


def clear_session(settings: Settings, session_id: str) -> None:
    """Forget a session."""
    count = _with_bot(settings, lambda bot: bot.clear(session_id))
    open_console().print(f"{count} {'turn' if count == 1 else 'turns'} forgotten.")


def _as_json(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "started_at": turn.started_at.isoformat(),
        "status": turn.status,
        "question": turn.question,
        "answer": turn.answer,
        "record": dict(turn.record),
    }


def _with_bot(settings: Settings, work: Callable[[Chatbot], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with open_chatbot(settings) as bot:
            return await work(bot)

    return asyncio.run(run())


def _print_json(data: object) -> None:
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2, default=str) + "\n")
