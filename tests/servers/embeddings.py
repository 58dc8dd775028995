"""An endpoint for embeddings whose meaning of words is written down in a table."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.servers.loopback import Loopback, Reply, Request

MEANINGS: Mapping[str, int] = {
    word: meaning
    for meaning, words in enumerate(
        [
            ("pump", "水泵", "machine"),
            ("oil", "lubricate", "润滑", "grease"),
            ("holiday", "leave", "vacation", "年假", "休假"),
            ("duck", "鸭子", "bird"),
        ]
    )
    for word in words
}
SIZE = 8
Fault = Callable[[Request, Reply], Any]


def vector(text: str, size: int = SIZE) -> list[float]:
    """Return a vector of the meanings that occur in the text, and a little of its own."""
    found = [0.0] * size
    for word, meaning in MEANINGS.items():
        if word in text.casefold():
            found[meaning] = 1.0
    found[-1] += 0.2
    return found


class EmbeddingServer(Loopback):
    """Answers `POST /v1/embeddings`; set `fault` to answer otherwise, `refused` for texts."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.fault: Fault | None = None
        self.refused: Sequence[str] = ()
        self.size = SIZE

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def texts(self) -> list[str]:
        """All texts that it was asked for so far."""
        return [text for request in self.requests for text in request.json()["input"]]

    async def _answer(self, request: Request, reply: Reply) -> None:
        if self.fault is not None:
            await self.fault(request, reply)
            return
        assert (request.method, request.path) == ("POST", "/v1/embeddings")
        texts = request.json()["input"]
        if any(word in text for text in texts for word in self.refused):
            await reply.json({"error": {"message": "input not accepted"}}, status=400)
            return
        rows = [
            {"index": at, "embedding": vector(text, self.size)} for at, text in enumerate(texts)
        ]
        # in whatever order: the index counts
        await reply.json({"object": "list", "data": rows[::-1], "model": "scripted"})


async def refuse(request: Request, reply: Reply) -> None:
    await reply.json({"error": {"message": "bad key", "code": "invalid_api_key"}}, status=401)


async def fail(request: Request, reply: Reply) -> None:
    await reply.json({"error": {"message": "broken"}}, status=500)


async def hang(request: Request, reply: Reply) -> None:
    await asyncio.wait_for(reply.closed_by_client(), 30)


def saying(data: object) -> Fault:
    """Return what answers with this JSON."""

    async def answer(request: Request, reply: Reply) -> None:
        await reply.json(data)

    return answer
