"""A RAGFlow server for tests: the shapes, versions and faults that its clients meet."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from tests.servers.loopback import Loopback, Reply, Request
from tests.servers.ragflow_completion import Completions
from tests.servers.ragflow_documents import Documents
from tests.servers.ragflow_faults import FAULTS, Fault
from tests.servers.ragflow_knowledge import Chat, Dataset, sample, scored
from tests.servers.ragflow_rows import chat_row, chunk_row, dataset_row

Version = Literal["0.22", "0.27"]
Route = Callable[[Request, Reply, Mapping[str, str]], Awaitable[None]]
KEY = "ragflow-test-key"
MAX_PAGE = 100


class RagflowServer(Loopback):
    """Serves `chats` like RAGFlow of `version`.

    `fail` switches a fault on; the attributes `raw_chunks`, `chunks_as_dict` and `null_scores`
    change the shape of chunks; `answer` is what its assistants say, `stream_shape` how.
    """

    def __init__(
        self, chats: Sequence[Chat] | None = None, *, version: Version = "0.27", key: str = KEY
    ) -> None:
        super().__init__(self._handle)
        self.chats = list(sample() if chats is None else chats)
        self.datasets = {
            dataset.id: dataset for chat in self.chats for dataset in chat.datasets
        }
        self.version = version
        self.key = key
        self.raw_chunks = False
        self.chunks_as_dict = False
        self.null_scores = False
        self.refuses_mixed_embeddings = True
        self.completions = Completions(self)
        self.documents = Documents(self)
        self._faults: list[tuple[str, Fault, int | None]] = []
        change = "PUT" if version == "0.22" else "PATCH"
        self._routes: list[tuple[str, re.Pattern[str], Route]] = [
            (method, re.compile(pattern), route)
            for method, pattern, route in [
                ("GET", r"/chats", self._list_chats),
                ("POST", r"/chats", self._create_chat),
                (
                    change,
                    r"/chats/(?P<chat>\w+)",
                    self._change_chat,
                ),
                ("GET", r"/datasets", self._list_datasets),
                ("POST", r"/datasets", self._create_dataset),
                ("POST", r"/retrieval", self.retrieve),
                *self.documents.routes(),
                *self.completions.routes(),
            ]
        ]

    def fail(self, path: str, fault: str | Fault, *, times: int | None = None) -> None:
        """Answer requests whose path contains `path` with a fault, `times` or for ever."""
        chosen = FAULTS[fault] if isinstance(fault, str) else fault
        self._faults.append((path, chosen, times))

    def heal(self) -> None:
        """Switch all faults off."""
        self._faults.clear()

    def asked(self, path: str) -> list[Request]:
        """Return the requests so far whose path contains `path`."""
        return [request for request in self.requests if path in request.path]

    async def _handle(self, request: Request, reply: Reply) -> None:
        for index, (path, fault, times) in enumerate(self._faults):
            if path in request.path:
                if times is not None:
                    rest = (path, fault, times - 1)
                    self._faults[index : index + 1] = [rest] if times > 1 else []
                await fault(request, reply)
                return
        path = re.sub(r"^/+api/v1", "", request.path)
        if path == "/system/healthz" and self.version != "0.22":
            parts = {"db": "ok", "doc_engine": "ok", "redis": "ok", "storage": "ok"}
            await reply.json({**parts, "status": "ok"})
        elif path == "/system/version" and self.version != "0.22":
            await reply.json({"code": 0, "data": f"v{self.version}.0", "message": "success"})
        elif request.headers.get("authorization", "").split(" ")[-1] != self.key:
            unauthorized = "<Unauthorized '401: Unauthorized'>"
            await reply.json({"code": 401, "data": None, "message": unauthorized}, status=401)
        else:
            await self._route(path, request, reply)

    async def _route(self, path: str, request: Request, reply: Reply) -> None:
        known = False
        for method, pattern, route in self._routes:
            if (match := pattern.fullmatch(path)) is not None:
                known = True
                if method == request.method:
                    await route(request, reply, match.groupdict())
                    return
        if known:
            message = "<MethodNotAllowed '405: Method Not Allowed'>"
            await reply.json({"code": 100, "data": None, "message": message})
        else:
            message = f"Not Found: {request.path}"
            body = {"code": 404, "data": None, "error": "Not Found", "message": message}
            await reply.json(body, status=404)

    async def _list_chats(self, request: Request, reply: Reply, _: Mapping[str, str]) -> None:
        limits = await self._limits(request, reply, 100)
        if limits is None:
            return
        rows = [chat_row(chat, self.version, self.datasets) for chat in self.chats[limits]]
        if self.version == "0.22":
            await reply.json({"code": 0, "data": rows})
        else:
            data = {"chats": rows, "total": len(self.chats)}
            await reply.json({"code": 0, "data": data, "message": "success"})

    async def _create_chat(self, request: Request, reply: Reply, _: Mapping[str, str]) -> None:
        body = request.json()
        ids = body.get("dataset_ids") or []
        if any(chat.name == body.get("name") for chat in self.chats):
            await denied(reply, "duplicated chat name in creating chat")
        elif unknown := [each for each in ids if each not in self.datasets]:
            await denied(reply, f"You don't own the dataset {unknown[0]}")
        elif empty := [each for each in ids if not _parsed(self.datasets[each])]:
            await denied(reply, f"The dataset {empty[0]} doesn't own parsed file")
        else:
            chat = Chat(name=body["name"], dataset_ids=ids)
            self.chats.insert(0, chat)
            await reply.json({"code": 0, "data": chat_row(chat, self.version, self.datasets)})

    async def _change_chat(
        self, request: Request, reply: Reply, ids: Mapping[str, str]
    ) -> None:
        (chat,) = (each for each in self.chats if each.id == ids["chat"])
        chat.dataset_ids = request.json()["dataset_ids"]
        await reply.json({"code": 0, "data": chat_row(chat, self.version, self.datasets)})

    async def _list_datasets(
        self, request: Request, reply: Reply, _: Mapping[str, str]
    ) -> None:
        limits = await self._limits(request, reply, 101)
        if limits is None:
            return
        datasets = list(self.datasets.values())
        if name := request.query.get("name"):
            datasets = [each for each in datasets if each.name == name[0]]
            if not datasets:
                await denied(reply, f"User 'u' lacks permission for dataset '{name[0]}'")
                return
        envelope = {"code": 0, "data": [dataset_row(each) for each in datasets[limits]]}
        if self.version != "0.22":
            envelope["total_datasets"] = len(datasets)
        await reply.json(envelope)

    async def _create_dataset(
        self, request: Request, reply: Reply, _: Mapping[str, str]
    ) -> None:
        body = request.json()
        dataset = Dataset(name=body["name"], description=body.get("description") or "")
        self.datasets[dataset.id] = dataset
        await reply.json({"code": 0, "data": dataset_row(dataset)})

    async def retrieve(self, request: Request, reply: Reply, _: Mapping[str, str]) -> None:
        body = request.json()
        ids = body.get("dataset_ids")
        if not ids:
            await denied(reply, "`dataset_ids` is required.")
            return
        if unknown := [each for each in ids if each not in self.datasets]:
            await denied(reply, f"You don't own the dataset {unknown[0]}.")
            return
        datasets = [self.datasets[each] for each in ids]
        if len({each.embedding_model for each in datasets}) > 1:
            message = 'Datasets use different embedding models."'
            await reply.json({"code": 109, "data": False, "message": message})
            return
        if body.get("page_size", 30) > MAX_PAGE:
            await too_large(reply, 100)
            return
        if not body.get("question", "").strip():
            await reply.json({"code": 0, "data": {"total": 0, "chunks": [], "doc_aggs": {}}})
            return
        hits = [
            hit
            for hit in scored(body["question"], datasets)
            if hit[0] >= body.get("similarity_threshold", 0.2)
        ][: body.get("page_size", 30)]
        rows = [
            chunk_row(hit, raw=self.raw_chunks, scores=not self.null_scores) for hit in hits
        ]
        chunks: Any = rows
        if self.chunks_as_dict:
            chunks = {row.get("id") or row["chunk_id"]: row for row in rows}
        data = {"total": len(rows), "chunks": chunks, "doc_aggs": []}
        await reply.json({"code": 0, "data": data})

    async def _limits(self, request: Request, reply: Reply, code: int) -> slice | None:
        number = int(request.query.get("page", ["1"])[0])
        size = int(request.query.get("page_size", ["30"])[0])
        if size > MAX_PAGE and self.version != "0.22":
            await too_large(reply, code)
            return None
        return slice((number - 1) * size, number * size)


async def denied(reply: Reply, message: str) -> None:
    """Send the shape of nearly all errors: status 200, code 102, no data."""
    await reply.json({"code": 102, "message": message})


async def too_large(reply: Reply, code: int) -> None:
    message = "ValueError('page_size must be less than or equal to 100')"
    await reply.json({"code": code, "data": None, "message": message})


def _parsed(dataset: Dataset) -> bool:
    return any(document.chunks and document.run == "DONE" for document in dataset.documents)
