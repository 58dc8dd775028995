"""A RAGFlow server whose retrieval takes 150 ms, in a process of its own.

python -m benchmarks.ragflow_server    prints its port and serves
"""

import asyncio
import sys
import threading
from collections.abc import Mapping

from tests.servers.loopback import Reply, Request
from tests.servers.ragflow import RagflowServer

RETRIEVAL_SECONDS = 0.15


class SlowRagflow(RagflowServer):
    """Takes as long as a server with an index and a reranker."""

    async def retrieve(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        """Answer after a while."""
        await asyncio.sleep(RETRIEVAL_SECONDS)
        await super().retrieve(request, reply, ids)


if __name__ == "__main__":
    with SlowRagflow() as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        threading.Event().wait()
