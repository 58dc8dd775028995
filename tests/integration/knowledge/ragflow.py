"""Opens the adapter on a contract server, and makes datasets for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chatbot.knowledge.ragflow import RagflowKnowledgeBase, RagflowTransport
from tests.servers.ragflow import RagflowServer
from tests.servers.ragflow_knowledge import EMBEDDING_MODEL, Dataset, Document


@asynccontextmanager
async def opened(
    server: RagflowServer,
    *,
    timeout_seconds: float = 30,
    key: str | None = None,
    list_seconds: float = 60,
) -> AsyncIterator[RagflowKnowledgeBase]:
    transport = RagflowTransport(
        server.url,
        server.key if key is None else key,
        timeout_seconds=timeout_seconds,
        retry_seconds=(0.01, 0.05),
        recheck_seconds=0.05,
    )
    knowledge_base = RagflowKnowledgeBase(transport, list_seconds=list_seconds)
    try:
        yield knowledge_base
    finally:
        await knowledge_base.close()


def dataset(name: str, *chunks: str, model: str = EMBEDDING_MODEL, about: str = "") -> Dataset:
    documents = [Document(name=f"{name}.md", chunks=chunks)] if chunks else []
    return Dataset(name=name, description=about, embedding_model=model, documents=documents)
