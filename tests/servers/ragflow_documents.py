"""Uploading, parsing and downloading documents, as RAGFlow does it."""

from collections.abc import Mapping
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING

from tests.servers.loopback import Reply, Request
from tests.servers.ragflow_knowledge import Dataset, Document, made_id
from tests.servers.ragflow_rows import document_row

if TYPE_CHECKING:
    from tests.servers.ragflow import RagflowServer, Route

UNSUPPORTED = "This type of file has not been supported yet!"


class Documents:
    """Parses in two steps, one each time the documents are listed.

    `broken` maps the name of a document to the message that its parsing fails with; `stuck`
    parsing never ends.
    """

    def __init__(self, server: "RagflowServer") -> None:
        self._server = server
        self.broken: dict[str, str] = {}
        self.stuck = False

    def routes(self) -> "list[tuple[str, str, Route]]":
        documents = r"/datasets/(?P<dataset>\w+)/documents"
        return [
            ("POST", documents, self.upload),
            ("GET", documents, self.list_documents),
            ("DELETE", documents, self._delete),
            ("GET", documents + r"/(?P<document>\w+)", self._download),
            ("POST", r"/datasets/(?P<dataset>\w+)/chunks", self._parse),
        ]

    async def upload(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        if (dataset := await self._dataset(reply, ids)) is None:
            return
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + request.body)
        rows = []
        for part in message.iter_parts():
            name = part.get_filename() or ""
            if name.endswith(".zzz"):
                await reply.json({"code": 500, "message": f"{name}: {UNSUPPORTED}"})
                return
            taken = {document.name for document in dataset.documents}
            number = 1
            stem, dot, suffix = name.rpartition(".")
            while name in taken:
                name, number = f"{stem}({number}){dot}{suffix}", number + 1
            blob = part.get_payload(decode=True)
            assert isinstance(blob, bytes)
            document = Document(
                name=name, blob=blob, run="UNSTART", progress=0.0, id=made_id(dataset.id + name)
            )
            dataset.documents.append(document)
            rows.append(document_row(dataset, document, self._server.version))
        await reply.json({"code": 0, "data": rows})

    async def list_documents(
        self, request: Request, reply: Reply, ids: Mapping[str, str]
    ) -> None:
        if (dataset := await self._dataset(reply, ids)) is None:
            return
        documents = dataset.documents
        for field in ("name", "id"):
            if value := request.query.get(field):
                documents = [each for each in documents if getattr(each, field) == value[0]]
                if not documents:
                    message = f"You don't own the document {value[0]}."
                    await reply.json({"code": 102, "message": message})
                    return
        for document in documents:
            if document.run == "RUNNING" and not self.stuck:
                self._advance(document)
        number = int(request.query.get("page", ["1"])[0])
        size = int(request.query.get("page_size", ["30"])[0])
        rows = [
            document_row(dataset, each, self._server.version)
            for each in documents[(number - 1) * size : number * size]
        ]
        await reply.json({"code": 0, "data": {"total": len(documents), "docs": rows}})

    async def _delete(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        if (dataset := await self._dataset(reply, ids)) is None:
            return
        unwanted = request.json().get("ids") or []
        dataset.documents = [each for each in dataset.documents if each.id not in unwanted]
        await reply.json({"code": 0})

    def _advance(self, document: Document) -> None:
        if document.progress < 0.5:
            document.progress = 0.5
        elif document.name in self.broken:
            document.run, document.progress = "FAIL", -1.0
            document.message = f"17:03:12 Task has been received.\n{self.broken[document.name]}"
        else:
            document.run, document.progress = "DONE", 1.0
            text = document.blob.decode(errors="replace")
            document.chunks = [part for part in text.split("\n\n") if part.strip()]

    async def _download(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        if (dataset := await self._dataset(reply, ids)) is None:
            return
        wanted = [each for each in dataset.documents if each.id == ids["document"]]
        if not wanted:
            message = f"The dataset not own the document {ids['document']}."
            await reply.json({"code": 102, "message": message})
            return
        name = wanted[0].name.encode("ascii", "replace").decode()
        reply.extra.append(("Content-Disposition", f'attachment; filename="{name}"'))
        await reply.send(wanted[0].blob, content_type="application/octet-stream")

    async def _parse(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        if (dataset := await self._dataset(reply, ids)) is None:
            return
        wanted = request.json().get("document_ids") or []
        documents = [each for each in dataset.documents if each.id in wanted]
        if not wanted:
            await reply.json({"code": 102, "message": "`document_ids` is required"})
        elif any(document.run == "RUNNING" for document in documents):
            message = "Can't parse document that is currently being processed"
            await reply.json({"code": 102, "message": message})
        else:
            for document in documents:
                document.run, document.progress = "RUNNING", 0.0
            await reply.json({"code": 0})

    async def _dataset(self, reply: Reply, ids: Mapping[str, str]) -> Dataset | None:
        dataset = self._server.datasets.get(ids["dataset"])
        if dataset is None:
            message = f"You don't own the dataset {ids['dataset']}. "
            await reply.json({"code": 102, "message": message})
        return dataset
