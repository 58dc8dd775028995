"""What a turn needs at its beginning is loaded side by side."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from chatbot.domain import Assistant, LoadedHistory, Session
from chatbot.history.local import LocalChatHistory
from tests.integration.graph.conftest import Bench
from tests.ports import Call, InMemoryKnowledgeBase, Said


@dataclass
class ToldKnowledgeBase(InMemoryKnowledgeBase):
    """Tells when it was asked for its assistants."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def assistants(self) -> Sequence[Assistant]:
        self.asked.set()
        return await super().assistants()


class WaitingHistory(LocalChatHistory):
    """Loads once the knowledge base was asked."""

    asked: asyncio.Event

    async def load(self, session: Session, *, limit: int) -> LoadedHistory:
        async with asyncio.timeout(30):
            await self.asked.wait()
        return await super().load(session, limit=limit)


async def test_assistants_are_listed_while_the_history_is_loaded(bench: Bench) -> None:
    knowledge = ToldKnowledgeBase()
    async with WaitingHistory(":memory:") as history:
        history.asked = knowledge.asked
        bench.script(Said(call=Call("general_chat")), Said(["Hello."]))
        answer = await bench.bot_with(history=history, knowledge=knowledge).ask("hello")
    assert answer.text == "Hello."
