"""A service where somebody has many conversations."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta

from chatbot.domain import ANONYMOUS, Session, Turn
from chatbot.history.local import LocalChatHistory
from chatbot.ports import Ports
from chatbot.settings import Settings
from graphs import Chatbot
from serving.http import create_app
from tests.integration.http.ports import InMemoryKnowledgeBase, scripted
from tests.integration.http.running_app import running_app
from tests.integration.http.service import quotes

START = datetime(2026, 3, 1, tzinfo=UTC)


@contextmanager
def many_sessions(count: int) -> Iterator[str]:
    """Yield the address of a service with so many conversations, numbered from the oldest."""

    @asynccontextmanager
    async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
        async with LocalChatHistory(":memory:", ttl_days=10_000) as history:
            for number in range(count):
                session = Session(session_id=f"s{number}", user_id=ANONYMOUS)
                when = START + timedelta(minutes=number)
                turn = Turn(id=f"t{number}", question=f"Question {number}?", started_at=when)
                await history.save(session, turn)
            model = scripted(quotes)
            knowledge = InMemoryKnowledgeBase([], [])
            yield Chatbot(Ports(history=history, knowledge=knowledge, model=model))

    with running_app(create_app(Settings(), open_bot=open_bot)) as url:
        yield url
