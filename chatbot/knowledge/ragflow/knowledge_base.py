"""RAGFlow's assistants as the knowledge base."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from chatbot.domain import Assistant, Findings, Passage, Ranking, SourceFile
from chatbot.errors import KnowledgeBaseError, KnowledgeFailure
from chatbot.knowledge.addresses import address_of
from chatbot.knowledge.fusion import merge
from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.cache import Renewed
from chatbot.knowledge.ragflow.errors import RagflowError
from chatbot.knowledge.ragflow.listing import Listing, load_listing
from chatbot.knowledge.ragflow.retrieval import Answer, Retrieval
from chatbot.knowledge.ragflow.source import source_file
from chatbot.knowledge.ragflow.tasks import all_within
from chatbot.knowledge.ragflow.transport import RagflowTransport

LIST_SECONDS = 60.0
NEAREST = 3  # documents that are named where nothing was found
NEAREST_PASSAGES = 10  # that they are taken from
MARGIN = 0.95  # whoever waits with the same limit gets what there is before it strikes
_Result = list[Answer] | RagflowError
_GRAVEST: Sequence[KnowledgeFailure] = (
    "unavailable",
    "forbidden",
    "protocol",
    "argument",
    "not_found",
)


class RagflowKnowledgeBase:
    """Searches the datasets of RAGFlow's assistants; an assistant here is a chat there.

    Owns the transport. The list of assistants is renewed in the background when it is older
    than `list_seconds`. `documents_url` is where `document` is served: passages get an address
    below it, unless RAGFlow knows where the document came from.
    """

    def __init__(
        self,
        transport: RagflowTransport,
        *,
        list_seconds: float = LIST_SECONDS,
        documents_url: str = "",
    ) -> None:
        self._transport = transport
        self._documents_url = documents_url
        self._listing: Renewed[Listing] = Renewed(
            lambda: load_listing(transport), fresh_seconds=list_seconds
        )

    async def assistants(self) -> Sequence[Assistant]:
        """See `KnowledgeBase.assistants`."""
        listing = await self._listing.get()
        return [listing.assistant(chat) for chat in listing.chats.values()]

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`."""
        question = query.strip().encode(errors="replace").decode()
        if not question or not assistants:
            return Findings()
        deadline = time.monotonic() + self._transport.timeout_seconds * MARGIN
        listing = await self._listing.get()
        asked = list({each.id: each for each in assistants}.values())
        results = await all_within(
            deadline - time.monotonic(), (self._ask(listing, each, question) for each in asked)
        )
        errors = [result for result in results if isinstance(result, RagflowError)]
        if len(errors) == len(results):
            raise gravest(errors)
        answers = [
            answer for result in results if isinstance(result, list) for answer in result
        ]
        rankings = [
            Ranking(passages=self.addressed(each.passages), yardstick=each.yardstick)
            for each in answers
        ]
        passages = merge(rankings, limit)
        seconds = deadline - time.monotonic()
        return Findings(
            passages=passages,
            failures=_failures(zip(asked, results, strict=True)),
            nearest=() if passages else await self._nearest(listing, asked, question, seconds),
            rankings=rankings,
        )

    def addressed(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages, each with the address that opens it."""
        if not self._documents_url:
            return list(passages)
        return [
            each
            if each.url or not each.document_id
            else replace(each, url=address_of(each, self._documents_url))
            for each in passages
        ]

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        """See `KnowledgeBase.document`."""
        listing = await self._listing.get()
        asked = {each.id for each in assistants}
        chats = (chat for chat_id, chat in listing.chats.items() if chat_id in asked)
        datasets = [each for chat in chats for each in chat.dataset_ids]
        return await source_file(self._transport, datasets, document_id)

    async def empty_response(self, assistant: Assistant) -> str:
        """Return what the assistant says when it found nothing, or "" for nothing fixed.

        Raises:
            RagflowError: There is no such assistant.
        """
        chat = (await self._listing.get()).chats.get(assistant.id)
        if chat is None:
            raise _missing(assistant)
        return chat.empty_response

    async def check(self) -> str:
        """See `KnowledgeBase.check`."""
        try:
            await self._transport.fetch(lambda: self._transport.list_chats(page_size=1))
        except KnowledgeBaseError as error:
            return error.message
        return ""

    async def close(self) -> None:
        """Close the connections to RAGFlow."""
        await self._listing.close()
        await self._transport.close()

    async def _ask(self, listing: Listing, assistant: Assistant, question: str) -> _Result:
        chat = listing.chats.get(assistant.id)
        if chat is None:
            return _missing(assistant)
        if not chat.dataset_ids:
            return [
                Answer(failures=[f"The assistant {chat.name!r} has no dataset in RAGFlow."])
            ]
        return await self._retrieve(listing, chat, question)

    async def _retrieve(self, listing: Listing, chat: wire.Chat, question: str) -> _Result:
        try:
            return await Retrieval(
                transport=self._transport, listing=listing, chat=chat, question=question
            ).run()
        except RagflowError as error:
            return error

    async def _nearest(
        self, listing: Listing, asked: Sequence[Assistant], question: str, seconds: float
    ) -> tuple[str, ...]:
        """Return the documents that come closest, below the assistants' thresholds."""
        chats = [listing.chats[each.id] for each in asked if each.id in listing.chats]
        searches = [
            self._retrieve(listing, replace(chat, similarity_threshold=0.0), question)
            for chat in chats
            if chat.dataset_ids and chat.similarity_threshold > 0
        ]
        results = await all_within(seconds, searches) if searches else []
        answers = [
            answer for result in results if isinstance(result, list) for answer in result
        ]
        names = (each.document for each in merge(answers, NEAREST_PASSAGES))
        return tuple(dict.fromkeys(name for name in names if name))[:NEAREST]


def _missing(assistant: Assistant) -> RagflowError:
    return RagflowError("not_found", f"RAGFlow has no assistant {assistant.name!r} any more.")


def gravest(errors: Sequence[RagflowError]) -> RagflowError:
    """Return the error that tells most about why nobody answered."""
    return min(errors, key=lambda error: _GRAVEST.index(error.kind))


def _failures(
    results: Iterable[tuple[Assistant, _Result]],
) -> Mapping[str, str]:
    failures = {}
    for assistant, result in results:
        if isinstance(result, RagflowError):
            failures[assistant.name] = result.message
        elif sentences := [each for answer in result for each in answer.failures]:
            failures[assistant.name] = " ".join(dict.fromkeys(sentences))
    return failures
