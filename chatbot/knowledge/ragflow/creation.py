"""Finds datasets and assistants by their names, and creates what is missing."""

from collections.abc import Sequence
from dataclasses import replace

from chatbot.domain import Assistant
from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.errors import RagflowError, unusable
from chatbot.knowledge.ragflow.fields import row_of
from chatbot.knowledge.ragflow.listing import chats, datasets
from chatbot.knowledge.ragflow.request import Request
from chatbot.knowledge.ragflow.transport import RagflowTransport


async def dataset_named(transport: RagflowTransport, name: str) -> str:
    """Return the id of the dataset, which is created if it is missing.

    Raises:
        RagflowError: It could be neither found nor created.
    """
    for dataset in await datasets(transport):
        if dataset.name == name:
            return dataset.id
    envelope = await transport.submit(lambda: transport.create_dataset(name=name))
    created = wire.dataset(row_of(envelope.get("data")))
    if created is None:
        reason = "no dataset in reply to its creation"
        raise unusable(reason)
    return created.id


async def assistant_over(transport: RagflowTransport, name: str, dataset_id: str) -> Assistant:
    """Return the assistant `name` with the dataset among its own; it is created if missing.

    Raises:
        RagflowError: RAGFlow refused; a dataset without a parsed document is one reason.
    """
    chat = next((each for each in await chats(transport) if each.name == name), None)
    if chat is None:
        # The SDK's versions send different defaults here, which not every server takes.
        body = {"name": name, "dataset_ids": [dataset_id]}
        envelope = await transport.submit(Request(method="POST", path="/chats", json=body))
        chat = wire.chat(row_of(envelope.get("data")))
        if chat is None:
            reason = "no assistant in reply to its creation"
            raise unusable(reason)
    elif dataset_id not in chat.dataset_ids:
        await _change_datasets(transport, chat, [*chat.dataset_ids, dataset_id])
    return Assistant(id=chat.id, name=chat.name, description=chat.description)


async def _change_datasets(
    transport: RagflowTransport, chat: wire.Chat, dataset_ids: Sequence[str]
) -> None:
    """Change only the datasets: newer servers merge a PATCH, older ones know PUT alone."""
    request = Request(
        method="PATCH", path=f"/chats/{chat.id}", json={"dataset_ids": list(dataset_ids)}
    )
    try:
        await transport.submit(request)
    except RagflowError as error:
        if "not allowed" not in error.detail.lower() and "status 405" not in error.detail:
            raise
        await transport.submit(replace(request, method="PUT"))
