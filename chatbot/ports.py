"""What the graph needs from outside; the third port is LangChain's `BaseChatModel`."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from langchain_core.language_models import BaseChatModel

from chatbot.domain import (
    AnswerPiece,
    Assistant,
    Findings,
    Intent,
    LoadedHistory,
    Match,
    Session,
    SessionCursor,
    SessionSummary,
    SourceFile,
    Turn,
)
from chatbot.images.image import Image
from chatbot.images.policy import ImagePolicy
from chatbot.leases.port import SessionLeases
from chatbot.leases.queues import SessionQueues
from chatbot.limits import Limits
from chatbot.models.context_window import ContextWindow
from chatbot.prompts import Prompts
from chatbot.ratings import RatedTurn, RatingFilter
from chatbot.statistics import Statistics
from chatbot.tasks import Background
from chatbot.tools.tool_servers import ToolServers
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
        place of a stopped or failed one, and one with more of the answer that of a stopped one.
        The record of a turn may get a summary, once, and a `feedback` that is newer.

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


class ImageStore(Protocol):
    """The images of questions and answers. They go with their session, whatever ends it."""

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        """Keep an image with a session. Keeping it again changes nothing.

        `at` is when its turn began, by default just now: if the session was cleared since, the
        image is not kept.

        Raises:
            HistoryError: Neither the store nor its fallback could be written.
        """
        ...

    async def find_image(self, user_id: str, name: str) -> Image | None:
        """Return an image of any session of the user, or nothing.

        Raises:
            HistoryError: It could not be looked for, or not everywhere.
        """
        ...


class SessionStore(ChatHistory, ImageStore, Protocol):
    """The conversations as people keep them: paged, named, searched, taken along.

    Every method raises `HistoryError` if neither the store nor its fallback can do it.
    """

    async def sessions(
        self, user_id: str, *, limit: int, before: SessionCursor | None = None
    ) -> Sequence[SessionSummary]:
        """Return the user's sessions, the most recently active first.

        `before` is the cursor of the last session on the page before.
        """
        ...

    async def summary(self, session: Session) -> SessionSummary | None:
        """Return the session as a list shows it, or nothing if it has no turns."""
        ...

    async def turns(self, session: Session) -> Sequence[Turn]:
        """Return all turns of the session, oldest first."""
        ...

    async def search(self, user_id: str, text: str, *, limit: int) -> Sequence[Match]:
        """Return the user's turns that have all words of the text, the newest first."""
        ...

    async def rated(self, wanted: RatingFilter) -> Sequence[RatedTurn]:
        """Return the rated turns of all users that are wanted, the latest rated first."""
        ...

    async def rename(self, session: Session, title: str) -> bool:
        """Give the session another title and tell whether there is such a session.

        Raises:
            InputError: The title has no words.
        """
        ...

    async def restore(self, session: Session, title: str, turns: Sequence[Turn]) -> None:
        """Keep the turns at the end of the session, even if it was cleared after they began."""
        ...

    async def forget_user(self, user_id: str) -> int:
        """Forget all sessions of the user and return how many there were."""
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

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        """Return the file behind a citation, or nothing if none of these assistants has it.

        The id may come from anybody: what is not a document of theirs is not given.

        Raises:
            KnowledgeBaseError: The file could not be read.
        """
        ...

    async def check(self) -> str:
        """Return why the knowledge base cannot be asked at this moment, or ""."""
        ...


class Respondent(Protocol):
    """Assistants that answer by themselves."""

    def answer(self, question: str, assistant: Assistant) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the assistant's answer as it comes, no text if it knows nothing about it.

        Raises:
            KnowledgeBaseError: There was no answer, or not all of it.
        """
        ...


class Traces(Protocol):
    """Where the traces of turns go. What it is told never fails and is not waited for."""

    def rated(self, turn: Turn) -> None:
        """Take what the turn's reader thinks of it, which its record holds, or took back."""
        ...

    async def link(self, turn: Turn) -> str | None:
        """Return the address that shows the turn's trace, where there is one."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """All that the graph is built on.

    `model` is any LangChain chat model that takes tools; it routes, rewrites and answers.
    `toolbox` holds what it may call while it answers; `tool_servers`, where there are any, hold
    the same and more. Without `leases` two turns of one session may run at once. With a
    `respondent` an assistant that is asked alone answers by itself. `window` is what the model
    can read at once; without it the history is cut by characters. `background` is what goes on
    behind a turn. `images` keeps those that
    the model makes. Without `traces` nothing is traced, or somebody else sees to it.
    """

    history: ChatHistory
    knowledge: KnowledgeBase
    model: BaseChatModel
    leases: SessionLeases | None = None
    respondent: Respondent | None = None
    prompts: Prompts = field(default_factory=Prompts.load)
    toolbox: Toolbox = field(default_factory=Toolbox)
    tool_servers: ToolServers | None = None
    window: ContextWindow | None = None
    images: ImageStore | None = None
    image_policy: ImagePolicy = field(default_factory=ImagePolicy)
    sees_images: bool = False
    traces: Traces | None = None
    limits: Limits = field(default_factory=Limits)
    queues: SessionQueues = field(default_factory=SessionQueues)
    statistics: Statistics = field(default_factory=Statistics)
    background: Background = field(default_factory=Background)
    default_session_id: str = "default"
    default_intent: Intent = "general_chat"
