"""The documents of one dataset: listed, uploaded, parsed, deleted, downloaded."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import BinaryIO

from ragflow_sdk import DataSet
from ragflow_sdk import Document as SdkDocument

from chatbot.domain import SourceFile
from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.errors import RagflowError, unusable
from chatbot.knowledge.ragflow.listing import rows_of_all_pages
from chatbot.knowledge.ragflow.transport import RagflowTransport

UPLOAD_SECONDS = 600.0
DOWNLOAD_SILENCE_SECONDS = 30.0
LOOKUPS_AT_ONCE = 8
_ATTACHMENT = "attachment"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


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
        async with self._transport.stream(
            document.download, silence_seconds=DOWNLOAD_SILENCE_SECONDS
        ) as response:
            disposition = response.headers.get("Content-Disposition", "")
            if not disposition.strip().lower().startswith(_ATTACHMENT):
                await self._transport.connection.envelope(response)  # raises what it reports
                reason = "a reply that is no file"
                raise unusable(reason)
            return await self._transport.connection.read(response)


async def source_file(
    transport: RagflowTransport, dataset_ids: Iterable[str], document_id: str
) -> SourceFile | None:
    """Return the file of a document in one of the datasets, or nothing if none has it.

    Raises:
        RagflowError: RAGFlow could not be asked, or does not give the file.
    """
    if _ID.fullmatch(document_id) is None:
        return None
    turns = asyncio.Semaphore(LOOKUPS_AT_ONCE)

    async def look(dataset_id: str) -> tuple[Documents, wire.Document] | None:
        async with turns:
            documents = Documents(transport, dataset_id)
            found = await documents.find(document_id)
            return None if found is None else (documents, found)

    looked = await asyncio.gather(*(look(each) for each in dict.fromkeys(dataset_ids)))
    for documents, document in filter(None, looked):
        content = await documents.download(document.id)
        return SourceFile(name=document.name, content=content)
    return None
