"""A session as the history of messages that LangChain's own classes take."""

import asyncio
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from chatbot.domain import ANONYMOUS, Session, Turn
from chatbot.errors import InputError
from chatbot.ports import ChatHistory

if TYPE_CHECKING:
    from langchain_mongodb import MongoDBChatMessageHistory

SYNCHRONOUS_SECONDS = 30.0

Answer = TypeVar("Answer")


def message_history(
    history: ChatHistory, session: Session, *, limit: int = 200
) -> BaseChatMessageHistory:
    """Return the newest `limit` turns of the session as a history of messages.

    Called in the event loop in which `history` is used. There, use the methods that are
    awaited; those that are not are for other threads.
    """
    return _SessionMessages(history, session, limit=limit, loop=asyncio.get_running_loop())


def mongodb_message_history(
    uri: str,
    session: Session,
    *,
    database: str = "chatbot",
    collection: str = "chat_history",
    owner: str = ANONYMOUS,
) -> "MongoDBChatMessageHistory":
    """Return a session in MongoDB as LangChain's own class reads it.

    For programs that use that class already. It is synchronous and knows neither users nor
    expiry nor outages: what it adds is found again, what it clears is gone.
    """
    # The package takes seconds to import, and nothing else needs it.
    from langchain_mongodb import MongoDBChatMessageHistory  # noqa: PLC0415

    from chatbot.history.mongo_store import stored_key  # noqa: PLC0415 - loads the driver

    return MongoDBChatMessageHistory(
        uri,
        session_id=stored_key(session, owner),
        database_name=database,
        collection_name=collection,
        create_index=False,
    )


class _SessionMessages(BaseChatMessageHistory):
    # `messages` is a property here, as it is in LangChain's own classes.

    def __init__(
        self,
        history: ChatHistory,
        session: Session,
        *,
        limit: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._history = history
        self._session = session
        self._limit = limit
        self._loop = loop

    async def aget_messages(self) -> list[BaseMessage]:
        """Return questions and answers, oldest first."""
        found: list[BaseMessage] = []
        for turn in (await self._history.load(self._session, limit=self._limit)).turns:
            found.append(HumanMessage(turn.question))
            if turn.answer:
                found.append(AIMessage(turn.answer))
        return found

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep questions and answers as turns; an answer completes the last question.

        Raises:
            InputError: There is no question for an answer.
        """
        newest = (await self._history.load(self._session, limit=1)).turns
        turn = newest[0] if newest else None
        for message in messages:
            if isinstance(message, HumanMessage):
                turn = _asked(message.text)
            elif isinstance(message, AIMessage) and message.text:
                turn = _answered(turn, message.text)
            else:
                continue
            await self._history.save(self._session, turn)

    async def aclear(self) -> None:
        """Forget the session."""
        await self._history.clear(self._session)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The same as `aget_messages`, for other threads."""
        return self._wait(self.aget_messages())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Do the same as `aadd_messages`, for other threads."""
        self._wait(self.aadd_messages(messages))

    def clear(self) -> None:
        """Forget the session, for other threads."""
        self._wait(self.aclear())

    def _wait(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            current = asyncio.get_running_loop()
        except RuntimeError:
            current = None
        if current is self._loop:
            work.close()
            message = "Inside the event loop, use aget_messages, aadd_messages and aclear."
            raise InputError(message)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SYNCHRONOUS_SECONDS)


def _asked(question: str) -> Turn:
    return Turn(
        id=uuid.uuid4().hex, question=question, started_at=datetime.now(UTC), status="stopped"
    )


def _answered(turn: Turn | None, answer: str) -> Turn:
    if turn is None or turn.status == "complete":
        message = "There is no question that this message could answer."
        raise InputError(message)
    return replace(turn, answer=answer, status="complete")
