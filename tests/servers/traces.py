"""A LangSmith endpoint that keeps the traces and the feedback it receives, or fails to."""

import asyncio
import email.parser
import email.policy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import zstandard

from tests.servers.loopback import Loopback, Reply, Request

PROJECT = "5f6fdd27-8a5c-4f0e-9f3d-0f2f9d1d2c11"
TENANT = "0b3f1f9a-6f5e-4d39-8f55-0c8a9d3a7e22"
INFO = {
    "version": "0.12.0",
    "instance_flags": {"zstd_compression_enabled": True},
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "scale_up_qsize_trigger": 1000,
        "scale_up_nthreads_limit": 16,
        "scale_down_nempty_trigger": 4,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
    },
}


@dataclass
class Run:
    """One run of a trace, as it was sent."""

    id: str
    data: dict[str, Any] = field(default_factory=dict)
    children: list["Run"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.data.get("name"))

    @property
    def metadata(self) -> dict[str, Any]:
        return dict((self.data.get("extra") or {}).get("metadata") or {})

    def tree(self) -> dict[str, Any]:
        """Return the names of the run's children and theirs, in the order they began."""
        return {child.name: child.tree() for child in self.children}


class TraceSink:
    """Collects runs; `url` goes into `LANGSMITH_ENDPOINT`.

    With a `fault` everything is refused with this status, or never answered (`"hang"`).
    `ratings` holds the feedback that stands now, by its id, `told` the requests about it.
    """

    def __init__(self, server: Loopback) -> None:
        self._server = server
        self._runs: dict[str, Run] = {}
        self._changed = threading.Condition()
        self.raw = b""
        self.feedback: list[dict[str, Any]] = []
        self.fault: int | str | None = None
        self.ratings: dict[str, dict[str, Any]] = {}
        self.told: list[str] = []

    @property
    def url(self) -> str:
        return self._server.url

    def wait_for_roots(self, count: int, *, seconds: float = 20) -> list[Run]:
        """Return the traces once `count` of them have ended, oldest first."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._ended()) >= count, seconds):
                names = sorted(run.name for run in self._runs.values())
                message = f"{len(self._ended())} of {count} traces ended; runs: {names}"
                raise AssertionError(message)
            return self._ended()

    def wait_for(self, run_id: str, *, seconds: float = 20) -> Run:
        """Return this run with all below it, once it has ended."""

        def ended() -> bool:
            run = self._runs.get(run_id)
            return run is not None and bool(run.data.get("end_time"))

        with self._changed:
            if not self._changed.wait_for(ended, seconds):
                message = f"run {run_id} did not end; there are {sorted(self._runs)}"
                raise AssertionError(message)
            self._ended()
            return self._runs[run_id]

    def rate(self, request: Request) -> int:
        """Keep, change or remove feedback, and return the status."""
        self.told.append(request.method)
        given = request.json() if request.body else {}
        name = given["id"] if request.method == "POST" else request.path.rpartition("/")[2]
        if request.method != "POST" and name not in self.ratings:
            return 404
        if request.method == "DELETE":
            del self.ratings[name]
        else:
            self.ratings[name] = {**self.ratings.get(name, {}), **given}
        return 200

    def take(self, request: Request) -> None:
        body = request.body
        if request.headers.get("content-encoding") == "zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        with self._changed:
            self.raw += body
            for name, data in _parts(body, request.headers["content-type"]):
                event, run_id, *key = name.split(".")
                if event in {"post", "patch"}:
                    run = self._runs.setdefault(run_id, Run(run_id))
                    run.data |= {key[0]: data} if key else data
                elif event == "feedback":
                    self.feedback.append(data)
            self._changed.notify_all()

    def _ended(self) -> list[Run]:
        for run in self._runs.values():
            run.children = sorted(
                (
                    child
                    for child in self._runs.values()
                    if child.data.get("parent_run_id") == run.id
                ),
                key=lambda child: str(child.data.get("dotted_order")),
            )
        roots = [run for run in self._runs.values() if not run.data.get("parent_run_id")]
        ended = [run for run in roots if run.data.get("end_time")]
        return sorted(ended, key=lambda run: str(run.data.get("dotted_order")))


@contextmanager
def trace_sink() -> Iterator[TraceSink]:
    """Run a sink for traces on 127.0.0.1."""

    async def handle(request: Request, reply: Reply) -> None:
        if sink.fault == "hang":
            await asyncio.Event().wait()
        elif isinstance(sink.fault, int):
            await reply.json({"detail": request.headers.get("x-api-key")}, status=sink.fault)
        elif request.path == "/info":
            await reply.json(INFO)
        elif request.path == "/sessions":
            project: dict[str, Any] = {
                "id": PROJECT,
                "tenant_id": TENANT,
                "name": request.query["name"][0],
            }
            project |= {"start_time": "2026-01-01T00:00:00", "reference_dataset_id": None}
            await reply.json([project])
        elif request.path.startswith("/feedback"):
            await reply.json({}, status=sink.rate(request))
        else:
            if request.path.startswith("/runs"):  # the LangGraph server also counts its runs
                sink.take(request)
            await reply.json({}, status=202)

    with Loopback(handle) as server:
        sink = TraceSink(server)
        yield sink


def _parts(body: bytes, content_type: str) -> Iterator[tuple[str, Any]]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        assert isinstance(payload, bytes)
        yield str(name), json.loads(payload)
