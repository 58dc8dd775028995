"""Answers where the caller keeps the conversation, and nothing is kept here."""

import uuid
from collections.abc import Sequence
from dataclasses import replace

from chatbot.domain import ANONYMOUS, Session, Turn
from chatbot.history.given import GivenHistory
from chatbot.ports import Ports
from graphs.conversation import Chatbot


class Stateless:
    """The same chatbot over the same ports, but for its memory."""

    def __init__(self, ports: Ports) -> None:
        self._history = GivenHistory()
        limits = replace(ports.limits, summarize=False)
        self.bot = Chatbot(
            replace(ports, history=self._history, leases=None, images=None, limits=limits)
        )

    def give(self, earlier: Sequence[Turn], *, user_id: str | None = None) -> Session:
        """Return a session for one question after these turns; `forget` is to follow."""
        user = ANONYMOUS if user_id is None else user_id
        session = Session(session_id=str(uuid.uuid4()), user_id=user)
        self._history.give(session, earlier)
        return session

    def forget(self, session: Session) -> None:
        """Forget what was given."""
        self._history.forget(session)
