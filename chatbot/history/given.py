"""A history that others keep: what they give is read, and nothing is written."""

from collections.abc import Sequence

from chatbot.domain import LoadedHistory, Session, SessionSummary, Turn


class GivenHistory:
    """A `ChatHistory` of the turns that were given for the moment."""

    def __init__(self) -> None:
        self._turns: dict[Session, Sequence[Turn]] = {}

    def give(self, session: Session, turns: Sequence[Turn]) -> None:
        """Let the session have these turns until they are forgotten."""
        self._turns[session] = turns

    def forget(self, session: Session) -> None:
        """Forget the session."""
        self._turns.pop(session, None)

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """See `ChatHistory.load`."""
        turns = self._turns.get(session, ())
        return LoadedHistory(turns=turns[-limit:] if limit else ())

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """See `ChatHistory.find`."""
        turns = self._turns.get(session, ())
        return next((turn for turn in turns if turn.id == turn_id), None)

    async def save(self, session: Session, turn: Turn) -> str:
        """Keep nothing: whoever asked has the answer."""
        del session, turn
        return ""

    async def clear(self, session: Session) -> int:
        """See `ChatHistory.clear`."""
        return len(self._turns.pop(session, ()))

    async def sessions(self, user_id: str, *, limit: int) -> Sequence[SessionSummary]:
        """List nothing: the sessions are their callers'."""
        del user_id, limit
        return ()

    async def check(self) -> str:
        """See `ChatHistory.check`."""
        return ""
