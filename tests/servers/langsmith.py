"""A LangSmith that keeps datasets, their examples, experiments, and what is traced."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.servers.loopback import Loopback, Reply, Request
from tests.servers.traces import INFO, TraceSink


@dataclass
class LangSmith:
    """What was sent. `url` goes into `LANGSMITH_ENDPOINT`."""

    url: str
    traces: TraceSink
    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)
    experiments: list[dict[str, Any]] = field(default_factory=list)

    async def handle(self, request: Request, reply: Reply) -> None:
        match request.method, request.path:
            case "GET", "/info":
                await reply.json(INFO)
            case "GET", "/datasets":
                names = request.query["name"]
                await reply.json(
                    [self.datasets[name] for name in names if name in self.datasets]
                )
            case "POST", "/datasets":
                await reply.json(self._made(request, self.datasets))
            case "GET", "/examples":
                first = request.query.get("offset", ["0"]) == ["0"]
                await reply.json(list(self.examples.values()) if first else [])
            case "POST", "/examples/bulk":
                self.examples |= {each["id"]: each for each in request.json()}
                await reply.json(request.json())
            case "GET", "/sessions":
                await reply.json(self.experiments[:1])
            case "POST", "/sessions":
                experiment = {**request.json(), **_stamps("start_time"), "tenant_id": TENANT}
                self.experiments.append(experiment)
                await reply.json(experiment)
            case _:
                self.traces.take(request)
                await reply.json({}, status=202)

    @staticmethod
    def _made(request: Request, kept: dict[str, dict[str, Any]]) -> dict[str, Any]:
        made = {**request.json(), "id": str(uuid.uuid4()), **_stamps("created_at")}
        kept[made["name"]] = made
        return made


TENANT = str(uuid.uuid4())


def _stamps(name: str) -> dict[str, str]:
    return {name: datetime.now(UTC).isoformat()}


@contextmanager
def langsmith() -> Iterator[LangSmith]:
    """Run it on 127.0.0.1."""

    async def handle(request: Request, reply: Reply) -> None:
        await service.handle(request, reply)

    with Loopback(handle) as server:
        service = LangSmith(url=server.url, traces=TraceSink(server))
        yield service
