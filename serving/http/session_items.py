"""What the routes of conversations take and give."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from chatbot.domain import Intent, Outcome, Thumb, Turn, TurnStatus
from chatbot.events import usage_of
from graphs.images import addresses_of
from graphs.sessions import LONGEST_COMMENT


class SessionItem(BaseModel):
    """A conversation in the list; its title is made from its first question.

    `cursor` leads to those behind it.
    """

    session_id: str
    title: str
    last_active: datetime
    turns: int
    cursor: str


class SessionList(BaseModel):
    """The most recently active conversations first."""

    sessions: list[SessionItem]


class Feedback(BaseModel):
    """What a reader thinks of an answer."""

    model_config = ConfigDict(extra="forbid")

    thumb: Thumb | None = None
    comment: Annotated[str, Field(max_length=LONGEST_COMMENT)] | None = None


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
    outcome: Outcome | None
    citations: list[dict[str, Any]]
    degraded: list[dict[str, Any]]
    usage: dict[str, Any]
    error: dict[str, Any] | None
    feedback: Feedback | None


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


class MatchItem(BaseModel):
    """A turn that was found, and its conversation."""

    session_id: str
    title: str
    turn: TurnItem


class MatchList(BaseModel):
    """The newest first."""

    matches: list[MatchItem]


class Forgotten(BaseModel):
    """How many conversations were forgotten."""

    sessions: int


class SessionName(BaseModel):
    """Which conversation it is."""

    session_id: str


class Title(BaseModel):
    """A title for a conversation."""

    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(min_length=1, max_length=500)]


class Imported(BaseModel):
    """What an export gave, and the name that the conversation gets instead of its own."""

    model_config = ConfigDict(extra="forbid")

    data: dict[str, Any]
    session_id: str | None = None


class Explanation(BaseModel):
    """A turn, and its whole audit record: passages, attempts, what was cut, times.

    `trace_url` shows its trace to those who run the chatbot; it is null for others.
    """

    turn: TurnItem
    record: dict[str, Any]
    trace_url: str | None


def item_of(turn: Turn) -> TurnItem:
    """Return the turn as the routes tell it."""
    record = turn.record
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
        outcome=record.get("outcome"),
        citations=record.get("citations") or [],
        degraded=record.get("degraded") or [],
        usage=usage_of(turn),
        error=record.get("error"),
        feedback=given(turn),
    )


def given(turn: Turn) -> dict[str, Any] | None:
    """Return the feedback of a turn, if it was given any that was not taken back."""
    kept = turn.record.get("feedback") or {}
    return {"thumb": kept.get("thumb"), "comment": kept.get("comment")} if kept else None
