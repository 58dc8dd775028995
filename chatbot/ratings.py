"""What readers think of answers, as those who run the chatbot look through it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from chatbot.domain import EPOCH, Session, Thumb, Turn, checked_id, read_place, written_place


@dataclass(frozen=True, kw_only=True, slots=True)
class RatingCursor:
    """The place of a rated turn in a list: the latest ratings first, then by the turns' ids."""

    rated_at: datetime
    turn_id: str

    def __str__(self) -> str:
        """Return the cursor as programs pass it on."""
        return written_place(self.rated_at, self.turn_id)

    @classmethod
    def parse(cls, text: object) -> Self:
        """Return the cursor that was written as this text.

        Raises:
            InputError: It is none.
        """
        rated_at, turn_id = read_place(text, "rated turn", "feedback")
        return cls(rated_at=rated_at, turn_id=checked_id(turn_id, "turn id"))


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedTurn:
    """A turn that its reader rated, whose it is, and the title of its session."""

    session: Session
    title: str
    turn: Turn
    rated_at: datetime

    @property
    def cursor(self) -> str:
        """Behind which turn the next page of the list begins, if this is the last one."""
        return str(RatingCursor(rated_at=self.rated_at, turn_id=self.turn.id))


@dataclass(frozen=True, kw_only=True, slots=True)
class RatingFilter:
    """Which rated turns are wanted: those with this thumb, or any, rated at `since` or later.

    `before` is the cursor of the last turn on the page before.
    """

    thumb: Thumb | None = None
    since: datetime = EPOCH
    limit: int = 50
    before: RatingCursor | None = None
