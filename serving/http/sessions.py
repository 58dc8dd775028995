"""`/api/sessions`: the conversations of the user who asks."""

import asyncio
import time
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse

from chatbot.domain import Turn
from chatbot.errors import InputError
from serving.http.errors import NotFoundError
from serving.http.session_items import (
    Explanation,
    Feedback,
    Forgotten,
    Imported,
    MatchItem,
    MatchList,
    Removed,
    SessionItem,
    SessionList,
    SessionName,
    SessionTurns,
    Stopped,
    Title,
    given,
    item_of,
)
from serving.http.state import Bot, Running
from serving.http.users import Caller, CurrentUser

router = APIRouter(prefix="/api/sessions", tags=["sessions"])
search = APIRouter(tags=["sessions"])  # beside them: a session may have any name

STOP_SECONDS = 5.0
POLL_SECONDS = 0.1
NO_SESSION = "There is no such conversation."

Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[str | None, Query(max_length=1_000, description="Of the last one seen.")]
FoundLimit = Annotated[int, Query(ge=1, le=100)]
SearchText = Annotated[str, Query(min_length=1, max_length=500)]


@router.get("")
async def list_sessions(
    bot: Bot,
    running: Running,
    user_id: CurrentUser,
    limit: Limit = 50,
    before: Cursor = None,
) -> SessionList:
    """List the conversations; the next page is asked for by the last one's cursor."""
    await running.settled(user_id)
    found = await bot.sessions(user_id=user_id, limit=limit, before=before)
    items = [
        SessionItem(
            session_id=each.session_id,
            title=each.title,
            last_active=each.last_active,
            turns=each.turns,
            cursor=each.cursor,
        )
        for each in found
    ]
    return SessionList(sessions=items)


@router.delete("")
async def delete_all_sessions(bot: Bot, running: Running, user_id: CurrentUser) -> Forgotten:
    """Forget all conversations of the user who asks."""
    await running.settled(user_id)
    return Forgotten(sessions=await bot.forget_user(user_id))


@router.post("/import", status_code=HTTPStatus.CREATED)
async def import_session(body: Imported, bot: Bot, user_id: CurrentUser) -> SessionName:
    """Make a conversation from an exported one."""
    session = await bot.import_(body.data, user_id=user_id, session_id=body.session_id)
    return SessionName(session_id=session.session_id)


@search.get("/api/search")
async def search_sessions(
    bot: Bot, user_id: CurrentUser, text: SearchText, limit: FoundLimit = 20
) -> MatchList:
    """Find the turns in which all words of a text were said, the newest first."""
    found = await bot.search_sessions(text, user_id=user_id, limit=limit)
    matches = [
        MatchItem(session_id=each.session_id, title=each.title, turn=item_of(each.turn))
        for each in found
    ]
    return MatchList(matches=matches)


@router.get("/{session_id}")
async def read_session(
    session_id: str, bot: Bot, running: Running, user_id: CurrentUser, limit: Limit = 100
) -> SessionTurns:
    """Read a conversation."""
    await running.settled(user_id, session_id)
    turns = await bot.turns(session_id, user_id=user_id, limit=limit)
    if not turns:
        raise NotFoundError(NO_SESSION)
    return SessionTurns(session_id=session_id, turns=[item_of(turn) for turn in turns])


@router.patch("/{session_id}")
async def rename_session(
    session_id: str, body: Title, bot: Bot, user_id: CurrentUser
) -> SessionName:
    """Give a conversation another title."""
    await _known(bot, session_id, user_id)
    await bot.rename(session_id, body.title, user_id=user_id)
    return SessionName(session_id=session_id)


@router.get("/{session_id}/export")
async def export_session(session_id: str, bot: Bot, user_id: CurrentUser) -> JSONResponse:
    """Give a whole conversation as a file."""
    await _known(bot, session_id, user_id)
    data = await bot.export(session_id, user_id=user_id)
    name = quote(f"{session_id}.json", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return JSONResponse(jsonable_encoder(data), headers=headers)


@router.get("/{session_id}/turns/{turn_id}/why")
async def why(session_id: str, turn_id: str, bot: Bot, caller: Caller) -> Explanation:
    """Tell how an answer came about: all that was noted while it was made."""
    turn = await _turn(bot, session_id, turn_id, caller.user_id)
    link = None
    if caller.operator:
        found = await bot.why(turn_id, session_id=session_id, user_id=caller.user_id)
        link = found.trace_url
    return Explanation(turn=item_of(turn), record=dict(turn.record), trace_url=link)


@router.post("/{session_id}/turns/{turn_id}/feedback")
async def rate(
    session_id: str, turn_id: str, body: Feedback, bot: Bot, user_id: CurrentUser
) -> Feedback:
    """Keep with an answer what its reader thinks of it; without a thumb it is taken back."""
    await _turn(bot, session_id, turn_id, user_id)
    turn = await bot.rate(session_id, turn_id, body.thumb, body.comment, user_id=user_id)
    return Feedback.model_validate(given(turn))


@router.post("/{session_id}/stop")
async def stop_session(
    session_id: str, bot: Bot, running: Running, user_id: CurrentUser
) -> Stopped:
    """Stop the answer that is being written in a conversation, and wait until it is kept."""
    stopped = await running.stop(user_id, session_id)
    if not stopped and await bot.stop(session_id, user_id=user_id):
        stopped = 1  # by another process, which hears of it within a second
        give_up = time.monotonic() + STOP_SECONDS
        # It is of another process: nothing here could wake us.
        while await bot.running(session_id, user_id=user_id) and time.monotonic() < give_up:  # noqa: ASYNC110 - as above
            await asyncio.sleep(POLL_SECONDS)
    if not stopped:
        await existing(bot, session_id, user_id)
    return Stopped(session_id=session_id, turns=stopped)


@router.delete("/{session_id}")
async def delete_session(
    session_id: str, bot: Bot, running: Running, user_id: CurrentUser
) -> Removed:
    """Forget a conversation. Of one that cannot be seen now, it is done later."""
    await running.settled(user_id, session_id)
    turns = await bot.clear(session_id, user_id=user_id)
    if not turns and not await bot.ports.history.check():
        raise NotFoundError(NO_SESSION)
    return Removed(session_id=session_id, turns=turns)


async def _turn(bot: Bot, session_id: str, turn_id: str, user_id: str) -> Turn:
    try:
        return await bot.turn(session_id, turn_id, user_id=user_id)
    except InputError as error:
        raise NotFoundError(error.message) from None


async def existing(bot: Bot, session_id: str, user_id: str) -> None:
    """Refuse what is asked of a conversation that the user does not have.

    Raises:
        NotFoundError: There is none, or it is another user's, which nobody is told.
    """
    if not await bot.turns(session_id, user_id=user_id, limit=1, replaced=True):
        raise NotFoundError(NO_SESSION)


async def _known(bot: Bot, session_id: str, user_id: str) -> None:
    """Refuse the same, but say so where nobody can know, as the store is away.

    The page reads conversations that nobody has begun, so that goes by `existing`.

    Raises:
        NotFoundError: There is none.
        HistoryError: There may be one.
    """
    if not await bot.turns(session_id, user_id=user_id, limit=1, replaced=True):
        error = await bot.missing(NO_SESSION)
        raise NotFoundError(error.message) if isinstance(error, InputError) else error
