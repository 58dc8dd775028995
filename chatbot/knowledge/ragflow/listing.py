"""The assistants and datasets there are, through all pages of the lists."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from chatbot.domain import Assistant
from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.errors import RagflowError
from chatbot.knowledge.ragflow.fields import Row, text
from chatbot.knowledge.ragflow.request import Call
from chatbot.knowledge.ragflow.transport import RagflowTransport
from chatbot.tasks import end

LAST_PAGE = 500
DESCRIPTION_LENGTH = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What RAGFlow has, by id, as of one moment."""

    chats: Mapping[str, wire.Chat] = field(default_factory=dict)
    datasets: Mapping[str, wire.Dataset] = field(default_factory=dict)

    def dataset(self, chat: wire.Chat, dataset_id: str) -> wire.Dataset:
        """Return what is known about a dataset of the assistant, at least its id."""
        of_chat = (each for each in chat.datasets if each.id == dataset_id)
        known = self.datasets.get(dataset_id) or next(of_chat, None)
        return known or wire.Dataset(id=dataset_id)

    def assistant(self, chat: wire.Chat) -> Assistant:
        """Return the assistant, described by its datasets if it says nothing itself."""
        description = chat.description or self._described_by_datasets(chat)
        return Assistant(
            id=chat.id, name=chat.name, description=description[:DESCRIPTION_LENGTH]
        )

    def _described_by_datasets(self, chat: wire.Chat) -> str:
        datasets = (self.dataset(chat, each) for each in chat.dataset_ids)
        return "; ".join(
            ": ".join(filter(None, (each.name, each.description)))
            for each in datasets
            if each.name or each.description
        )


async def load_listing(transport: RagflowTransport) -> Listing:
    """Read both lists. Without the datasets the assistants can still be used.

    Raises:
        RagflowError: The assistants could not be listed.
    """
    loading = asyncio.create_task(_datasets_if_possible(transport))
    try:
        return Listing(
            chats={chat.id: chat for chat in await chats(transport)},
            datasets={dataset.id: dataset for dataset in await loading},
        )
    finally:
        await end(loading)


async def chats(transport: RagflowTransport) -> Sequence[wire.Chat]:
    """Return all assistants.

    Raises:
        RagflowError: They could not be listed.
    """
    rows = await rows_of_all_pages(
        transport,
        lambda page: lambda: transport.list_chats(page=page, page_size=wire.PAGE_SIZE),
        key="chats",
    )
    return [chat for row in rows if (chat := wire.chat(row))]


async def datasets(transport: RagflowTransport) -> Sequence[wire.Dataset]:
    """Return all datasets.

    Raises:
        RagflowError: They could not be listed.
    """
    rows = await rows_of_all_pages(
        transport,
        lambda page: lambda: transport.list_datasets(page=page, page_size=wire.PAGE_SIZE),
        key="datasets",
    )
    return [dataset for row in rows if (dataset := wire.dataset(row))]


async def _datasets_if_possible(transport: RagflowTransport) -> Sequence[wire.Dataset]:
    try:
        return await datasets(transport)
    except RagflowError:
        return []


async def rows_of_all_pages(
    transport: RagflowTransport, call: Callable[[int], Call], key: str
) -> list[Row]:
    """Read page after page, until one is short or brings nothing that is new.

    Raises:
        RagflowError: A page could not be read.
    """
    rows: dict[str, Row] = {}
    for number in range(1, LAST_PAGE + 1):
        page = wire.page(await transport.fetch(call(number)), key)
        before = len(rows)
        rows |= {text(row.get("id")): row for row in page.rows}
        complete = page.total is not None and len(rows) >= page.total
        short = page.total is None and len(page.rows) < wire.PAGE_SIZE
        if complete or short or len(rows) == before:
            break
    return list(rows.values())
