"""Opens the document behind a citation, if one of the assistants that are asked has it."""

import asyncio
import re
from collections.abc import Iterable
from itertools import islice

from chatbot.domain import SourceFile
from chatbot.knowledge.ragflow.connection import REPLY_BYTES
from chatbot.knowledge.ragflow.documents import Documents
from chatbot.knowledge.ragflow.errors import RagflowError
from chatbot.knowledge.ragflow.transport import RagflowTransport

LOOKUPS_AT_ONCE = 8
NAME_BYTES = 200
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSAFE = re.compile(r'[\\/:*?"<>|]+')


async def source_file(
    transport: RagflowTransport, dataset_ids: Iterable[str], document_id: str
) -> SourceFile | None:
    """Return the file of a document in one of the datasets, or nothing if none has it.

    Raises:
        RagflowError: RAGFlow could not be asked, or does not give the file.
    """
    if _ID.fullmatch(document_id) is None:
        return None
    rest = iter(dict.fromkeys(dataset_ids))
    error: RagflowError | None = None
    while some := list(islice(rest, LOOKUPS_AT_ONCE)):
        looked = await asyncio.gather(
            *(_file_in(Documents(transport, each), document_id) for each in some)
        )
        for found in looked:
            if isinstance(found, SourceFile):
                return found
            error = error or found
    if error is not None:
        raise error
    return None


async def _file_in(documents: Documents, document_id: str) -> SourceFile | RagflowError | None:
    try:
        document = await documents.find(document_id)
        if document is None:
            return None
        name = file_name(document.name)
        if document.size > REPLY_BYTES:
            most = REPLY_BYTES // 2**20
            message = f"{name} is larger than {most} MiB. Open it in RAGFlow."
            return RagflowError("argument", message)
        return SourceFile(name=name, content=await documents.download(document.id))
    except RagflowError as error:
        return error


def file_name(name: str) -> str:
    """Return a name of RAGFlow as one that every system takes for a file."""
    printable = "".join(each if each.isprintable() else " " for each in name)
    safe = " ".join(_UNSAFE.sub("_", printable).split()).strip(". ")
    stem, dot, suffix = safe.rpartition(".")
    if not dot or len(suffix) > NAME_BYTES // 4:
        stem, dot, suffix = safe, "", ""
    room = NAME_BYTES - len((dot + suffix).encode())
    return stem.encode()[:room].decode(errors="ignore") + dot + suffix or "document"
