"""Searches before it is known whether that is wanted, while the router thinks."""

import asyncio
from collections.abc import Sequence

from chatbot.domain import Assistant, Findings
from chatbot.ports import KnowledgeBase
from chatbot.tasks import abandon
from graphs.tracing import SPECULATIVE, traced_search


class Prefetch:
    """Searches of one question, one for each of a few assistants, that are under way.

    It answers a search of exactly that kind, and passes every other one on: what is found is
    the same as without it, only sooner. One of several assistants is passed on as well: how
    their passages rank among each other only the knowledge base can tell.
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
                traced_search(
                    knowledge, question, assistants=[assistant], limit=limit, **SPECULATIVE
                ),
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

    async def likeliest(self) -> Findings | None:
        """Return what the assistant with the best passage found, once all have searched.

        Nothing if none of them found anything. Of equal ones the one that was named first.
        """
        results = await asyncio.gather(
            *map(asyncio.shield, self._searches.values()), return_exceptions=True
        )
        found = [each for each in results if isinstance(each, Findings) and each.passages]
        return max(found, key=lambda each: each.passages[0].score, default=None)

    def cancel(self) -> None:
        """End the searches that nobody waits for."""
        abandon(*self._searches.values())
