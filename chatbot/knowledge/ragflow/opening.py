"""Opens RAGFlow: its passages, and what its assistants answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chatbot.knowledge.ragflow.answers import ANSWER_SECONDS, SILENCE_SECONDS, RagflowAnswers
from chatbot.knowledge.ragflow.knowledge_base import RagflowKnowledgeBase
from chatbot.knowledge.ragflow.transport import RagflowTransport


@dataclass(frozen=True, kw_only=True, slots=True)
class Ragflow:
    """RAGFlow in both of its uses, over the same connections."""

    passages: RagflowKnowledgeBase
    answers: RagflowAnswers


@asynccontextmanager
async def open_ragflow(  # noqa: PLR0913 - settings, by name
    base_url: str,
    key: str,
    *,
    timeout_seconds: float = 15,
    silence_seconds: float = SILENCE_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
    documents_url: str = "",
) -> AsyncIterator[Ragflow]:
    """Open RAGFlow, and close its connections at the end.

    Raises:
        ConfigurationError: The key cannot be one.
    """
    transport = RagflowTransport(base_url, key, timeout_seconds=timeout_seconds)
    passages = RagflowKnowledgeBase(transport, documents_url=documents_url)
    answers = RagflowAnswers(
        transport, passages, silence_seconds=silence_seconds, answer_seconds=answer_seconds
    )
    try:
        yield Ragflow(passages=passages, answers=answers)
    finally:
        await answers.close()
