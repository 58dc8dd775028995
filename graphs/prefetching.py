"""Searches before it is known whether that is wanted, while the router thinks."""

import asyncio
from collections.abc import Sequence

from chatbot.domain import Assistant, Findings
from chatbot.ports import KnowledgeBase


class Prefetch:
    """Searches of one question, one for each of a few assistants, that are under way.

    It answers a search of exactly that kind, and passes every other one on: what is found is
    the same as without it, only sooner.
    """

    def __init__(
        self,
        knowledge: KnowledgeBase,
        question: str,
        assistants: Sequence[Assistant],
        *,
        limit: int,
    ) -> None:
        self._knowledge = knowledge
        self._question = question
        self._limit = limit
        self._searches = {
            assistant.id: asyncio.create_task(
                knowledge.search(question, assistants=[assistant], limit=limit),
                name=f"prefetch {assistant.name}",
            )
            for assistant in assistants
        }
        self.used = False

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`."""
        if len(assistants) == 1 and query == self._question and limit == self._limit:
            search = self._searches.get(assistants[0].id)
            if search is not None and not search.cancelled():
                self.used = True
                return await asyncio.shield(search)
        return await self._knowledge.search(query, assistants=assistants, limit=limit)

    def cancel(self) -> None:
        """End the searches that nobody waits for."""
        for search in self._searches.values():
            search.cancel()
            # Whatever came of it, nobody wants to know.
            search.add_done_callback(lambda done: done.cancelled() or done.exception())
