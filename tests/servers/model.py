"""A scripted OpenAI-compatible server: what it says, how it cuts it, and how it fails.

    with ModelServer([answer("Hello.")]) as server:           # the replies in turn
    with ModelServer(lambda request: answer("Hi.")) as server:      # or by request
    with ModelServer(Brain(routes={"hi": call("general_chat")})) as server:

`server.base_url` ends with `/v1`, `server.seen` holds the requests. The last reply of a list
is repeated. See `answer`, `call`, `calls`, `frames`, `refuse`, `whole`, `html`, `raw`,
`hang`, `reset`, `heartbeats`, `slow_head`, `by_key`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.servers.loopback import Loopback, Reply, Request
from tests.servers.model_faults import (
    hang,
    heartbeats,
    html,
    raw,
    refuse,
    reset,
    slow_head,
    whole,
)
from tests.servers.model_scripts import (
    ChatRequest,
    Script,
    answer,
    by_key,
    call,
    calls,
    delta,
    event,
    frames,
    text_of,
    words,
)

__all__ = [
    "Brain",
    "ChatRequest",
    "ModelServer",
    "Script",
    "answer",
    "by_key",
    "call",
    "calls",
    "delta",
    "event",
    "frames",
    "hang",
    "heartbeats",
    "html",
    "raw",
    "refuse",
    "reset",
    "slow_head",
    "text_of",
    "whole",
    "words",
]

Found = TypeVar("Found")


Replies = Sequence[Script] | Callable[[ChatRequest], Script]


class ModelServer(Loopback):
    """Serves `/v1/chat/completions` and `/v1/models` by script."""

    def __init__(self, replies: Replies, *, models: Sequence[str] = ("scripted",)) -> None:
        super().__init__(self._handle)
        self._replies = replies
        self._models = models
        self.seen: list[ChatRequest] = []
        self.abandoned = 0  # streams of which the client did not take the end
        self.connections = 0

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await super()._serve(reader, writer)

    async def _handle(self, request: Request, reply: Reply) -> None:
        if request.path == "/v1/models":
            data = [{"id": name, "object": "model"} for name in self._models]
            await reply.json({"object": "list", "data": data})
            return
        if request.path != "/v1/chat/completions":
            await reply.json({"error": {"message": "no such path"}}, status=404)
            return
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        chat = ChatRequest(body=request.json(), key=key)
        number = len(self.seen)
        self.seen.append(chat)
        if callable(self._replies):
            script = self._replies(chat)
        else:
            script = self._replies[min(number, len(self._replies) - 1)]
        try:
            await script(chat, reply)
        except (ConnectionError, asyncio.CancelledError):
            self.abandoned += 1
            raise


@dataclass(kw_only=True)
class Brain:
    """Replies as a sensible model would: routes, rewrites, answers.

    `routes`, `rewrites` and `answers` are looked up by the last message of the user; where the
    table has no such question, `route` and `answer` are used, and a rewrite repeats the
    question. A key of a table also fits a question that ends with it.
    """

    routes: Mapping[str, Script] = field(default_factory=dict)
    rewrites: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, str | Script] = field(default_factory=dict)
    route: Script = field(default_factory=lambda: call("general_chat"))
    answer: str | Script = "This is the answer."
    router_tool: str = "knowledge_base"
    rewrites_when: Callable[[ChatRequest], bool] = field(default_factory=lambda: _is_rewriting)
    delay: float = 0

    def __call__(self, request: ChatRequest) -> Script:
        question = request.question.strip()
        if self.router_tool in request.tools:
            return _lookup(self.routes, question) or self.route
        if self.rewrites_when(request):
            return answer(_lookup(self.rewrites, question) or question)
        said = _lookup(self.answers, question) or self.answer
        return answer(said, delay=self.delay) if isinstance(said, str) else said


def _is_rewriting(request: ChatRequest) -> bool:
    asked = request.instructions.lower()
    return any(words in asked for words in ("stand alone", "standalone", "stands alone"))


def _lookup(table: Mapping[str, Found], question: str) -> Found | None:
    for key, value in table.items():
        if question == key or question.endswith(key):
            return value
    return None
