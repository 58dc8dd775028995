"""`/api/sessions`: the conversations of the user who asks."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from chatbot.domain import Intent, Turn, TurnStatus
from graphs.images import addresses_of
from serving.http.errors import NotFoundError
from serving.http.state import Bot, Running
from serving.http.users import CurrentUser

router = APIRouter(prefix="/api/sessions", tags=["sessions"])

Limit = Annotated[int, Query(ge=1, le=200)]


class SessionItem(BaseModel):
    """A conversation in the list; its title is made from its first question."""

    session_id: str
    title: str
    last_active: datetime
    turns: int


class SessionList(BaseModel):
    """The most recently active conversations first."""

    sessions: list[SessionItem]


class TurnItem(BaseModel):
    """One question and what came of it; the names are those of the events.

    `images` are the addresses of the question's.
    """

    id: str
    question: str
    images: list[str]
    answer: str
    status: TurnStatus
    started_at: datetime
    intent: Intent | None
    reason: str
    enhanced_query: str
    assistants: list[str]
    citations: list[dict[str, Any]]
    degraded: list[dict[str, Any]]
    usage: dict[str, Any]
    error: dict[str, Any] | None


class SessionTurns(BaseModel):
    """The newest turns of a conversation, oldest first."""

    session_id: str
    turns: list[TurnItem]


class Stopped(BaseModel):
    """How many answers were stopped; what they had said is kept."""

    session_id: str
    turns: int


class Removed(BaseModel):
    """How many turns were forgotten."""

    session_id: str
    turns: int


@router.get("")
async def list_sessions(
    bot: Bot, running: Running, user_id: CurrentUser, limit: Limit = 50
) -> SessionList:
    """List the conversations."""
    await running.settled(user_id)
    found = await bot.sessions(user_id=user_id, limit=limit)
    items = [
        SessionItem(
            session_id=each.session_id,
            title=each.title,
            last_active=each.last_active,
            turns=each.turns,
        )
        for each in found
    ]
    return SessionList(sessions=items)


@router.get("/{session_id}")
async def read_session(
    session_id: str, bot: Bot, running: Running, user_id: CurrentUser, limit: Limit = 100
) -> SessionTurns:
    """Read a conversation."""
    await running.settled(user_id, session_id)
    turns = await bot.turns(session_id, user_id=user_id, limit=limit)
    if not turns:
        message = "There is no such conversation."
        raise NotFoundError(message)
    return SessionTurns(session_id=session_id, turns=[_item(turn) for turn in turns])


@router.post("/{session_id}/stop")
async def stop_session(session_id: str, running: Running, user_id: CurrentUser) -> Stopped:
    """Stop the answer that this process is writing in a conversation."""
    stopped = await running.stop(user_id, session_id)
    return Stopped(session_id=session_id, turns=stopped)


@router.delete("/{session_id}")
async def delete_session(
    session_id: str, bot: Bot, running: Running, user_id: CurrentUser
) -> Removed:
    """Forget a conversation."""
    await running.settled(user_id, session_id)
    return Removed(session_id=session_id, turns=await bot.clear(session_id, user_id=user_id))


def _item(turn: Turn) -> TurnItem:
    record = turn.record
    usage = {
        **(record.get("usage") or {}),
        "model": record.get("model"),
        "first_token_ms": record.get("first_token_ms"),
        "total_ms": record.get("total_ms"),
        "timings": record.get("timings") or {},
    }
    return TurnItem(
        id=turn.id,
        question=turn.question,
        images=addresses_of(turn),
        answer=turn.answer,
        status=turn.status,
        started_at=turn.started_at,
        intent=turn.intent,
        reason=record.get("reason") or "",
        enhanced_query=record.get("query") or turn.question,
        assistants=record.get("assistants") or [],
        citations=record.get("citations") or [],
        degraded=record.get("degraded") or [],
        usage=usage,
        error=record.get("error"),
    )
