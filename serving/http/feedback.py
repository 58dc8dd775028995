"""`/api/feedback`: what readers think of the answers, for those who run the chatbot."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from serving.http.session_items import TurnItem, item_of
from serving.http.state import Bot
from serving.http.users import Operator

router = APIRouter(prefix="/api/feedback", tags=["sessions"])

Thumbs = Literal["down", "up", "all"]
Days = Annotated[float | None, Query(ge=0, le=36_500)]
Limit = Annotated[int, Query(ge=1, le=200)]
Before = Annotated[str | None, Query(max_length=300)]


class RatedItem(BaseModel):
    """An answer that its reader rated, whose it is, and when it was rated."""

    user_id: str
    session_id: str
    title: str
    rated_at: datetime
    turn: TurnItem


class RatedList(BaseModel):
    """The latest ratings first; `next` goes into `before` for those behind them, if any."""

    feedback: list[RatedItem]
    next: str | None


@router.get("")
async def list_feedback(  # noqa: PLR0913, PLR0917 - one for each parameter
    bot: Bot,
    operator: Operator,
    thumb: Thumbs = "down",
    days: Days = None,
    limit: Limit = 50,
    before: Before = None,
) -> RatedList:
    """List an operator the answers that readers found bad, or good, of all users."""
    del operator
    wanted = None if thumb == "all" else thumb
    found = await bot.feedback(wanted, days=days, limit=limit, before=before)
    items = [
        RatedItem(
            user_id=each.session.user_id,
            session_id=each.session.session_id,
            title=each.title,
            rated_at=each.rated_at,
            turn=item_of(each.turn),
        )
        for each in found
    ]
    return RatedList(feedback=items, next=found[-1].cursor if len(found) == limit else None)
