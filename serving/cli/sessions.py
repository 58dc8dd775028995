"""`chatbot sessions`: the conversations there are."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from rich.text import Text

from chatbot.domain import Turn
from chatbot.errors import InputError
from chatbot.settings import Settings
from graphs.conversation import Chatbot, open_chatbot
from serving.cli.markdown import AnswerMarkdown
from serving.cli.reply import source_line
from serving.cli.tables import plain_table, table_of_sessions
from serving.cli.views import open_console
from serving.cli.why import explanation
from serving.cli.words import complain, in_one_line, plain, print_json

Result = TypeVar("Result")

QUOTED = 80


def list_sessions(
    settings: Settings,
    limit: int,
    *,
    as_json: bool,
    user: str | None = None,
    before: str | None = None,
) -> None:
    """Print the sessions, the latest first, and where the next page begins.

    Raises:
        InputError: `before` is no cursor.
    """
    found = with_bot(
        settings,
        lambda bot: bot.sessions(user_id=user, limit=limit, before=before),
        lists=True,
    )
    if as_json:
        print_json(
            [
                {
                    "session_id": each.session_id,
                    "title": each.title,
                    "last_active": each.last_active.isoformat(),
                    "turns": each.turns,
                    "cursor": each.cursor,
                }
                for each in found
            ]
        )
        return
    if found:
        open_console().print(table_of_sessions(found))
    else:
        complain("There are no more sessions." if before else "There are no sessions yet.")
    if len(found) == limit:
        complain(f"For those behind them: --before {shlex.quote(found[-1].cursor)}")


def show_session(
    settings: Settings,
    session_id: str,
    limit: int,
    *,
    as_json: bool,
    user: str | None = None,
) -> None:
    """Print what was said in a session.

    Raises:
        InputError: There is no such session.
    """

    async def read(bot: Chatbot) -> Sequence[Turn]:
        if turns := await bot.turns(session_id, user_id=user, limit=limit):
            return turns
        raise await bot.missing(_no_session(session_id))

    turns = with_bot(settings, read)
    if as_json:
        print_json([_as_json(turn) for turn in turns])
        return
    console = open_console()
    for turn in turns:
        console.print(f"> {plain(turn.question)}", style="bold")
        answer = plain(turn.answer)
        console.print(AnswerMarkdown(answer) if console.is_terminal else answer)
        if turn.status != "complete":
            console.print(f"({turn.status})", style="dim")
        for citation in turn.record.get("citations") or ():
            console.print(source_line(citation), style="dim")
        console.print()


def explain_turn(
    settings: Settings,
    session_id: str | None,
    turn_id: str | None,
    *,
    as_json: bool,
    user: str | None = None,
) -> None:
    """Print why an answer is as it is: of the last turn, or of the one that is named.

    Raises:
        InputError: There is no such turn.
    """
    found = with_bot(
        settings, lambda bot: bot.why(turn_id, session_id=session_id, user_id=user)
    )
    if as_json:
        where = {"session_id": found.session.session_id, "trace_url": found.trace_url}
        print_json({**where, **_as_json(found.turn)})
    else:
        open_console().print(explanation(found))


def clear_session(settings: Settings, session_id: str, *, user: str | None = None) -> None:
    """Forget a session.

    Raises:
        InputError: There is no such session: another one may be meant, which is still there.
    """

    async def clear(bot: Chatbot) -> int:
        count = await bot.clear(session_id, user_id=user)
        if not count:
            if not (degraded := await bot.ports.history.check()):
                raise InputError(_no_session(session_id))
            complain(f"{degraded} What is kept there of the session is forgotten then.")
        return count

    count = with_bot(settings, clear)
    open_console().print(f"{count} {'turn' if count == 1 else 'turns'} forgotten.")


def forget_user(settings: Settings, user: str | None = None) -> None:
    """Forget all sessions of a user."""
    count = with_bot(settings, lambda bot: bot.forget_user(user))
    open_console().print(f"{count} {'session' if count == 1 else 'sessions'} forgotten.")


def search_sessions(
    settings: Settings, text: str, limit: int, *, as_json: bool, user: str | None = None
) -> None:
    """Print the turns that have all words of the text."""
    found = with_bot(
        settings,
        lambda bot: bot.search_sessions(text, user_id=user, limit=limit),
        lists=True,
    )
    if as_json:
        print_json(
            [
                {
                    "session_id": each.session_id,
                    "title": each.title,
                    "turn": _as_json(each.turn),
                }
                for each in found
            ]
        )
        return
    if not found:
        complain("Nothing was found.")
        return
    table = plain_table("SESSION", "ASKED", "QUESTION", "ANSWER")
    for each in found:
        cells = (
            in_one_line(each.session_id),
            f"{each.turn.started_at.astimezone():%Y-%m-%d %H:%M}",
            in_one_line(each.turn.question, QUOTED),
            in_one_line(each.turn.answer, QUOTED),
        )
        table.add_row(*map(Text, cells))
    open_console().print(table)


def rename_session(
    settings: Settings, session_id: str, title: str, *, user: str | None = None
) -> None:
    """Give a session another title.

    Raises:
        InputError: There is no such session, or the title has no words.
    """
    with_bot(settings, lambda bot: bot.rename(session_id, title, user_id=user))


def with_bot(
    settings: Settings, work: Callable[[Chatbot], Awaitable[Result]], *, lists: bool = False
) -> Result:
    """Return what the work with an open chatbot gives.

    Of what the history `lists` it is said on stderr if it need not be all.
    """

    async def run() -> Result:
        async with open_chatbot(settings) as bot:
            found = await work(bot)
            if lists and (degraded := await bot.ports.history.check()):
                complain(f"{degraded} Only what this machine has kept is shown.")
            return found

    return asyncio.run(run())


def _no_session(session_id: str) -> str:
    return f"There is no session {session_id}: `chatbot sessions list` shows those there are."


def _as_json(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "started_at": turn.started_at.isoformat(),
        "status": turn.status,
        "question": turn.question,
        "answer": turn.answer,
        "record": dict(turn.record),
    }
