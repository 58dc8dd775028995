"""RAGFlow as the knowledge base: its SDK on a transport that never blocks."""

from chatbot.knowledge.ragflow.answers import RagflowAnswers
from chatbot.knowledge.ragflow.knowledge_base import RagflowKnowledgeBase
from chatbot.knowledge.ragflow.opening import Ragflow, open_ragflow
from chatbot.knowledge.ragflow.transport import RagflowTransport

__all__ = [
    "Ragflow",
    "RagflowAnswers",
    "RagflowKnowledgeBase",
    "RagflowTransport",
    "open_ragflow",
]
