"""The naive way with a long conversation: LangChain's class loads all of it, in every turn.

The steps are those written by hand with aiohttp. The model is given the same number of turns
that ours gives it: only the loading grows.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_mongodb.chat_message_histories import MongoDBChatMessageHistory
from pymongo import MongoClient

from benchmarks.handwritten import HandWritten, with_aiohttp
from benchmarks.steps import Services
from chatbot.settings import Settings

ROLES = {"human": "user", "ai": "assistant"}
MESSAGES = 2 * Settings.model_fields["history_turns"].default
DATABASE = "naive"


class WholeHistory:
    """Answers questions after what MongoDB has of the session."""

    def __init__(self, steps: HandWritten, client: MongoClient[dict[str, object]]) -> None:
        self._steps = steps
        self._client = client

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer."""
        history = history_of(self._client, session_id)
        messages = await asyncio.to_thread(lambda: history.messages)
        said = [
            {"role": ROLES[message.type], "content": str(message.content)}
            for message in messages[-MESSAGES:]
        ]
        answer = ""
        async for text in self._steps.answer(question, said):
            answer += text
            yield text
        turn: list[BaseMessage] = [HumanMessage(question), AIMessage(answer)]
        await asyncio.to_thread(history.add_messages, turn)


def history_of(
    client: MongoClient[dict[str, object]], session_id: str
) -> MongoDBChatMessageHistory:
    """Return a session as LangChain's class has it."""
    return MongoDBChatMessageHistory(
        None, session_id, database_name=DATABASE, client=client, create_index=False
    )


@asynccontextmanager
async def opened(services: Services) -> AsyncIterator[WholeHistory]:
    """Open the steps and MongoDB."""
    client: MongoClient[dict[str, object]] = MongoClient(services.mongodb)
    with client:
        async with with_aiohttp(services) as steps:
            yield WholeHistory(steps, client)
