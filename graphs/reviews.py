"""How answers came about and what their readers think of them, for those who look into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from chatbot.domain import EPOCH, Session, Thumb, Turn
from chatbot.ratings import RatedTurn, RatingCursor, RatingFilter
from graphs.sessions import Sessions, session_of, user_of

LOOKED_THROUGH = 200  # sessions, for a turn whose session is not known


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """A turn with its whole record, where it stands, and what shows its trace."""

    session: Session
    turn: Turn
    trace_url: str | None = None


class Reviews(Sessions):
    """What operators and curious readers ask; errors are those of `Sessions`."""

    async def why(
        self,
        turn_id: str | None = None,
        *,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> Explanation:
        """Tell how an answer came about: of a turn, or of the last one of a session.

        Without a session a turn is looked for in the user's latest ones, the default one first.

        Raises:
            InputError: There is no such turn.
        """
        session = session_of(session_id or self._ports.default_session_id, user_id)
        if turn_id is None or session_id is not None:
            turn = await self.turn(session.session_id, turn_id, user_id=user_id)
        else:
            session, turn = await self._found(turn_id, session)
        traces = self._ports.traces
        link = None if traces is None else await traces.link(turn)
        return Explanation(session=session, turn=turn, trace_url=link)

    async def feedback(
        self,
        thumb: Thumb | None = "down",
        *,
        days: float | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Sequence[RatedTurn]:
        """Return the turns of all users with this thumb, or any, the latest rated first.

        `days` is how long ago they were rated at most, `before` the `cursor` of the last turn
        on the page before.

        Raises:
            InputError: `before` is no cursor.
        """
        wanted = RatingFilter(
            thumb=thumb,
            since=_ago(days),
            limit=limit,
            before=None if before is None else RatingCursor.parse(before),
        )
        return await self._store.rated(wanted)

    async def _found(self, turn_id: str, default: Session) -> tuple[Session, Turn]:
        user_id = user_of(default.user_id)
        latest = await self._ports.history.sessions(user_id, limit=LOOKED_THROUGH)
        others = [session_of(each.session_id, user_id) for each in latest]
        for session in (default, *(each for each in others if each != default)):
            turn = await self._ports.history.find(session, turn_id)
            if turn is not None:
                return session, turn
        message = "There is no such turn. Name the session, if it is an old one."
        raise await self.missing(message)


def _ago(days: float | None) -> datetime:
    if days is None:
        return EPOCH
    try:
        return max(datetime.now(UTC) - timedelta(days=days), EPOCH)
    except OverflowError:
        return EPOCH
