"""The embedded knowledge base: a folder of documents, ranked on this machine."""

from chatbot.knowledge.local.knowledge_base import LocalKnowledgeBase

__all__ = ["LocalKnowledgeBase"]
