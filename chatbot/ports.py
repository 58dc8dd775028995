"""What the graph needs from outside; the third port is LangChain's `BaseChatModel`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from langchain_core.language_models import BaseChatModel

from chatbot.domain import (
    Assistant,
    Findings,
    Intent,
    LoadedHistory,
    Session,
    SessionSummary,
    Turn,
)
from chatbot.prompts import Prompts
from chatbot.tools.toolbox import Toolbox


class ChatHistory(Protocol):
    """The conversations, as turns in sessions that belong to users."""

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        """Return the newest `limit` turns of the session, oldest first.

        Raises:
            HistoryError: Neither the store nor its fallback could be read.
        """
        ...

    async def find(self, session: Session, turn_id: str) -> Turn | None:
        """Return one turn of the session, or nothing.

        Raises:
            HistoryError: Neither the store nor its fallback could be read.
        """
        ...

    async def save(self, session: Session, turn: Turn) -> str:
        """Keep the turn at the end of its session and return why it is degraded, or "".

        Saving the same turn id again changes nothing, except that a complete turn takes the
        place of a stopped or failed one.

        Raises:
            HistoryError: Neither the store nor its fallback could be written.
        """
        ...

    async def clear(self, session: Session) -> int:
        """Forget the session and return how many turns it had.

        Raises:
            HistoryError: The store could not be written, so something may be left.
        """
        ...

    async def sessions(self, user_id: str, *, limit: int) -> Sequence[SessionSummary]:
        """Return the user's sessions, the most recently active first.

        Raises:
            HistoryError: Neither the store nor its fallback could be read.
        """
        ...

    async def check(self) -> str:
        """Return why the history is degraded at this moment, or ""."""
        ...


class KnowledgeBase(Protocol):
    """Documents that can be searched, in parts that are called assistants."""

    async def assistants(self) -> Sequence[Assistant]:
        """Return the assistants there are.

        Raises:
            KnowledgeBaseError: The list could not be read.
        """
        ...

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """Return at most `limit` passages that are about the query, the best first.

        Nothing that is about the query is an empty result, not an error. An assistant that
        could not be asked is named in the findings as long as another one answered.

        Raises:
            KnowledgeBaseError: None of the assistants could be asked.
        """
        ...

    async def check(self) -> str:
        """Return why the knowledge base cannot be asked at this moment, or ""."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much a turn may use. Times are in seconds."""

    turn_seconds: float = 120
    router_seconds: float = 15
    knowledge_seconds: float = 15
    history_turns: int = 20
    passages: int = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """All that the graph is built on.

    `model` is any LangChain chat model that takes tools; it routes, rewrites and answers.
    `toolbox` holds what it may call while it answers.
    """

    history: ChatHistory
    knowledge: KnowledgeBase
    model: BaseChatModel
    prompts: Prompts = field(default_factory=Prompts.load)
    toolbox: Toolbox = field(default_factory=Toolbox)
    limits: Limits = field(default_factory=Limits)
    default_session_id: str = "default"
    default_intent: Intent = "general_chat"
