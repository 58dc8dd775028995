"""The documents of one dataset: listed, uploaded, parsed, deleted, downloaded."""

import asyncio
from collections.abc import Sequence
from typing import BinaryIO

import aiohttp
from ragflow_sdk import DataSet
from ragflow_sdk import Document as SdkDocument

from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.errors import RagflowError, too_late, unusable
from chatbot.knowledge.ragflow.listing import rows_of_all_pages
from chatbot.knowledge.ragflow.transport import RagflowTransport

UPLOAD_SECONDS = 600.0
DOWNLOAD_FACTOR = 4  # times what a search may take
_ATTACHMENT = "attachment"


class Documents:
    """The documents of the dataset `dataset_id`."""

    def __init__(self, transport: RagflowTransport, dataset_id: str) -> None:
        self.dataset_id = dataset_id
        self._transport = transport
        self._dataset = DataSet(transport, {"id": dataset_id})

    async def all(self) -> Sequence[wire.Document]:
        """Return all documents.

        Raises:
            RagflowError: They could not be listed.
        """
        rows = await rows_of_all_pages(
            self._transport,
            lambda page: (
                lambda: self._dataset.list_documents(page=page, page_size=wire.PAGE_SIZE)
            ),
            key="docs",
        )
        return [document for row in rows if (document := wire.document(row))]

    async def find(self, document_id: str) -> wire.Document | None:
        """Return one document, or nothing if the dataset does not have it.

        Raises:
            RagflowError: RAGFlow could not be asked.
        """
        try:
            envelope = await self._transport.fetch(
                lambda: self._dataset.list_documents(id=document_id)
            )
        except RagflowError as error:
            if error.kind in {"not_found", "argument"}:
                return None
            raise
        found = [wire.document(row) for row in wire.page(envelope, "docs").rows]
        return next((each for each in found if each and each.id == document_id), None)

    async def upload(self, name: str, file: BinaryIO | bytes) -> wire.Document:
        """Upload one document.

        Raises:
            RagflowError: RAGFlow did not take it, and says why.
        """
        envelope = await self._transport.submit(
            lambda: self._dataset.upload_documents([{"display_name": name, "blob": file}]),
            timeout_seconds=UPLOAD_SECONDS,
        )
        for row in wire.page(envelope, "docs").rows:
            if (document := wire.document(row)) is not None:
                return document
        reason = "no document in reply to an upload"
        raise unusable(reason)

    async def parse(self, document_ids: Sequence[str]) -> None:
        """Begin to parse documents.

        Raises:
            RagflowError: It was not begun, for none of them.
        """
        await self._transport.submit(
            lambda: self._dataset.async_parse_documents(list(document_ids))
        )

    async def delete(self, document_ids: Sequence[str]) -> None:
        """Delete documents.

        Raises:
            RagflowError: They may still be there.
        """
        await self._transport.submit(
            lambda: self._dataset.delete_documents(ids=list(document_ids))
        )

    async def download(self, document_id: str) -> bytes:
        """Return the file as it was uploaded.

        Raises:
            RagflowError: RAGFlow does not give it.
        """
        document = SdkDocument(
            self._transport, {"id": document_id, "dataset_id": self.dataset_id}
        )
        seconds = DOWNLOAD_FACTOR * self._transport.timeout_seconds
        try:
            async with (
                asyncio.timeout(seconds),
                self._transport.stream(document.download, silence_seconds=seconds) as response,
            ):
                return await self._file(response)
        except TimeoutError:
            raise too_late(seconds) from None

    async def _file(self, response: aiohttp.ClientResponse) -> bytes:
        disposition = response.headers.get("Content-Disposition", "")
        if disposition.strip().lower().startswith(_ATTACHMENT):
            return await self._transport.connection.read(response)
        await self._transport.connection.envelope(response)  # raises what it reports
        reason = "a reply that is no file"
        raise unusable(reason)
