"""Opens RAGFlow as the knowledge base, in one of its two modes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from chatbot.knowledge.ragflow.answers import RagflowAnswers
from chatbot.knowledge.ragflow.knowledge_base import RagflowKnowledgeBase
from chatbot.knowledge.ragflow.transport import RagflowTransport

Mode = Literal["retrieval", "assistant"]


@asynccontextmanager
async def open_ragflow(
    base_url: str, key: str, *, mode: Mode = "retrieval", timeout_seconds: float = 15
) -> AsyncIterator[RagflowKnowledgeBase | RagflowAnswers]:
    """Open the knowledge base: its passages, or the answers of its assistants.

    Raises:
        ConfigurationError: The key cannot be one.
    """
    transport = RagflowTransport(base_url, key, timeout_seconds=timeout_seconds)
    knowledge_base: RagflowKnowledgeBase | RagflowAnswers = RagflowKnowledgeBase(transport)
    if mode == "assistant":
        knowledge_base = RagflowAnswers(transport, RagflowKnowledgeBase(transport))
    try:
        yield knowledge_base
    finally:
        await knowledge_base.close()
