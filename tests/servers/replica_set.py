"""Three real mongods that are one replica set."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.servers.mongod import Mongod

NAME = "rs"
ELECTION_MILLISECONDS = 1000
READY_SECONDS = 60.0


class ReplicaSet:
    """A replica set used as a context manager. Each of its `nodes` may be killed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.nodes: list[Mongod] = []

    @property
    def uri(self) -> str:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
        return f"mongodb://{hosts}/?replicaSet={NAME}"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            nodes = [Mongod("--replSet", NAME, "--oplogSize", "64") for _ in range(3)]
            with ThreadPoolExecutor() as pool:
                self.nodes = list(pool.map(stack.enter_context, nodes))
            members = [
                {"_id": number, "host": f"127.0.0.1:{node.port}"}
                for number, node in enumerate(self.nodes)
            ]
            settings = {"electionTimeoutMillis": ELECTION_MILLISECONDS}
            config = {"_id": NAME, "members": members, "settings": settings}
            self.nodes[0].command("replSetInitiate", config)
            self.primary()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def primary(self) -> Mongod:
        """Return the node that takes writes, as soon as there is one."""
        end = time.monotonic() + READY_SECONDS
        with MongoClient[dict[str, Any]](self.uri, serverSelectionTimeoutMS=1000) as client:
            while time.monotonic() < end:
                try:
                    client.admin.command("ping")
                    address = client.primary
                except PyMongoError:
                    continue
                for node in self.nodes:
                    if address is not None and node.port == address[1]:
                        return node
        message = "the replica set has no primary"
        raise RuntimeError(message)

    def recover(self) -> None:
        """Bring all nodes back, and wait until one takes writes."""
        for node in self.nodes:
            node.recover()
        self.primary()
