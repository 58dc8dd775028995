"""Asks the datasets of one assistant for passages, with the settings of that assistant."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chatbot.domain import Ranking
from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.chunks import read_passages
from chatbot.knowledge.ragflow.errors import RagflowError
from chatbot.knowledge.ragflow.listing import Listing
from chatbot.knowledge.ragflow.request import Request, described
from chatbot.knowledge.ragflow.transport import RagflowTransport

QUESTION_LENGTH = 4_000
_MIXED_EMBEDDINGS = "embedding model"
_EMPTY = "no chunk found"  # older servers, for datasets without a parsed document


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer(Ranking):
    """Passages of datasets whose scores can be compared.

    `failures` are sentences about datasets that could not be searched.
    """

    failures: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """One question to one assistant."""

    transport: RagflowTransport
    listing: Listing
    chat: wire.Chat
    question: str

    async def run(self) -> list[Answer]:
        """Return what the assistant's datasets have about the question.

        RAGFlow refuses to search datasets of different embedding models in one call, so each
        group is asked by itself.

        Raises:
            RagflowError: None of the groups could be searched.
        """
        groups: dict[str, list[str]] = {}
        for dataset_id in self.chat.dataset_ids:
            model = self.listing.dataset(self.chat, dataset_id).embedding_model
            groups.setdefault(model, []).append(dataset_id)
        return await _together(self._search(ids, model) for model, ids in groups.items())

    async def _search(self, dataset_ids: Sequence[str], model: str) -> list[Answer]:
        try:
            envelope = await self.transport.fetch(self._request(dataset_ids))
        except RagflowError as error:
            return await self._search_rest(dataset_ids, model, error)
        passages = read_passages(envelope.get("data"), self.chat.name)
        yardstick = (model, self.chat.vector_similarity_weight, self.chat.rerank_id)
        return [Answer(passages=passages[: self.chat.top_n], yardstick=yardstick)]

    async def _search_rest(
        self, dataset_ids: Sequence[str], model: str, error: RagflowError
    ) -> list[Answer]:
        """Search what is left when RAGFlow refused the call because of single datasets."""
        if _EMPTY in error.detail.lower():
            return [Answer()]
        if _MIXED_EMBEDDINGS in error.detail.lower() and len(dataset_ids) > 1:
            return await _together(
                self._search([each], f"{model} {each}") for each in dataset_ids
            )
        lost = [each for each in dataset_ids if each in error.detail]
        rest = [each for each in dataset_ids if each not in lost]
        if error.kind != "not_found" or not lost or not rest:
            raise error
        names = ", ".join(self.listing.dataset(self.chat, each).name or each for each in lost)
        answers = await self._search(rest, model)
        failure = f"It was searched without {names}, which RAGFlow does not let this key use."
        return [replace(answers[0], failures=[*answers[0].failures, failure]), *answers[1:]]

    def _request(self, dataset_ids: Sequence[str]) -> Request:
        chat = self.chat
        request = described(
            lambda: self.transport.retrieve(
                dataset_ids=list(dataset_ids),
                question=self.question[:QUESTION_LENGTH],
                page_size=chat.top_n,
                similarity_threshold=chat.similarity_threshold,
                vector_similarity_weight=chat.vector_similarity_weight,
                top_k=chat.top_k,
                rerank_id=chat.rerank_id,
                keyword=chat.keyword,
                cross_languages=list(chat.cross_languages) or None,
                metadata_condition=chat.metadata_condition,
            )
        )
        switches = {"use_kg": chat.use_kg, "toc_enhance": chat.toc_enhance}
        newer = {name: True for name, on in switches.items() if on}  # unknown to older SDKs
        return replace(request, json={**request.json, **newer})


async def _together(searches: Iterable[Coroutine[Any, Any, list[Answer]]]) -> list[Answer]:
    """Return all answers; what failed is a sentence in them, unless everything did."""
    results = await asyncio.gather(*searches, return_exceptions=True)
    answers: list[Answer] = []
    errors: list[RagflowError] = []
    for result in results:
        if isinstance(result, RagflowError):
            errors.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            answers += result
    if errors and not answers:
        raise errors[0]
    return answers + [Answer(failures=[error.message]) for error in errors]
