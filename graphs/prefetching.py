"""Searches before it is known whether that is wanted, while the router thinks."""

import asyncio
from collections.abc import Sequence

from chatbot.domain import Assistant, Findings, Ranking
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.fusion import merge
from chatbot.ports import KnowledgeBase
from chatbot.tasks import abandon
from graphs.tracing import SPECULATIVE, traced_search


class Prefetch:
    """Searches of one question, one for each of a few assistants, that are under way.

    It answers a search of exactly that kind, and passes every other one on: what is found is
    the same as without it, only sooner. It also answers one of several of these assistants, if
    the knowledge base has told how their passages rank among each other.
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
        if query == self._question and limit == self._limit:
            searches = [
                search
                for each in assistants
                if (search := self._searches.get(each.id)) and not search.cancelled()
            ]
            if len(searches) == len(assistants) == 1:
                self.used = True
                return await asyncio.shield(searches[0])
            if searches and len(searches) == len(assistants):
                found = await self._together(assistants, searches)
                if found is not None:
                    self.used = True
                    return found
        return await self._knowledge.search(query, assistants=assistants, limit=limit)

    async def _together(
        self, assistants: Sequence[Assistant], searches: Sequence[asyncio.Task[Findings]]
    ) -> Findings | None:
        """Return what one search of them all would have found, as far as that can be told.

        Where nothing was found, it would have looked for what is near in all of them.
        """
        results = await asyncio.gather(*map(asyncio.shield, searches), return_exceptions=True)
        rankings: list[Ranking] = []
        failures: dict[str, str] = {}
        for assistant, result in zip(assistants, results, strict=True):
            if isinstance(result, KnowledgeBaseError):
                failures[assistant.name] = result.message
            elif isinstance(result, BaseException) or result.rankings is None:
                return None
            else:
                rankings += result.rankings
                failures |= result.failures
        passages = merge(rankings, self._limit)
        if not passages:
            return None
        return Findings(passages=passages, failures=failures, rankings=rankings)

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
