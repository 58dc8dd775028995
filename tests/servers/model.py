"""A scripted OpenAI-compatible server: what it says, how it cuts it, and how it fails.

    with ModelServer([answer("Hello.")]) as server:           # the replies in turn
    with ModelServer(lambda request: answer("Hi.")) as server:      # or by request
    with ModelServer(Brain(routes={"hi": call("general_chat")})) as server:

`server.base_url` ends with `/v1`, `server.seen` holds the requests. The last reply of a list
is repeated. See `answer`, `call`, `calls`, `frames`, `refuse`, `whole`, `html`, `hang`,
`reset`, `heartbeats`, `slow_head`, `by_key`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from tests.servers.loopback import Loopback, Reply, Request

Ending = Literal["done", "close", "reset", "stall"]
Usage = tuple[int, int] | None
Found = TypeVar("Found")


class How(TypedDict, total=False):
    """How a completion is sent: what ends it, and when its frames go out."""

    finish: str | None  # "stop", "tool_calls"; None leaves it out
    usage: Usage  # tokens read and written
    wait: float  # seconds before the first frame
    delay: float  # seconds between two frames
    together: bool  # every frame in one write
    ending: Ending
    model: str


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """A chat completion that was asked for."""

    body: Mapping[str, Any]
    key: str

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        messages: Sequence[Mapping[str, Any]] = self.body["messages"]
        return messages

    @property
    def tools(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    @property
    def question(self) -> str:
        """The text of the last message of the user."""
        return text_of([m for m in self.messages if m["role"] == "user"][-1]["content"])

    @property
    def instructions(self) -> str:
        """The text of the system messages."""
        return "\n".join(
            text_of(m["content"]) for m in self.messages if m["role"] in {"system", "developer"}
        )


Script = Callable[[ChatRequest, Reply], Awaitable[None]]
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


def answer(
    text: str | Sequence[str] = "",
    *,
    reasoning: Sequence[str] = (),
    reasoning_field: str = "reasoning_content",
    **how: Unpack[How],
) -> Script:
    """Say `text`, a piece per frame. A plain string goes word by word."""
    pieces = words(text) if isinstance(text, str) else list(text)
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{reasoning_field: piece} for piece in reasoning]
    deltas += [{"content": piece} for piece in pieces]
    message = {"content": "".join(pieces)}
    if reasoning:
        message[reasoning_field] = "".join(reasoning)
    return _completion(deltas, message, how)


def call(name: str, arguments: object = None, **how: Unpack[How]) -> Script:
    """Call one tool. See `calls`."""
    return calls([(name, {} if arguments is None else arguments)], **how)


def calls(
    wanted: Sequence[tuple[str, object]],
    *,
    cut: int = 7,
    text: str = "",
    **how: Unpack[How],
) -> Script:
    """Call tools, the arguments in fragments of `cut` characters.

    Arguments that are a string are sent as they are, anything else as JSON.
    """
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{"content": piece} for piece in words(text)]
    whole = []
    for index, (name, arguments) in enumerate(wanted):
        sent = arguments if isinstance(arguments, str) else json.dumps(arguments)
        function: dict[str, Any] = {"name": name, "arguments": ""}
        head = {"id": f"call_{index}", "type": "function", "function": function}
        deltas.append({"tool_calls": [{"index": index, **head}]})
        for start in range(0, len(sent), cut):
            fragment = {"arguments": sent[start : start + cut]}
            deltas.append({"tool_calls": [{"index": index, "function": fragment}]})
        whole.append({**head, "function": {"name": name, "arguments": sent}})
    message = {"content": text or None, "tool_calls": whole}
    return _completion(deltas, message, {"finish": "tool_calls", **how})


def frames(
    sent: Sequence[object],
    *,
    ending: Ending = "done",
    delay: float = 0,
    together: bool = False,
    cut: int = 0,
) -> Script:
    """Send frames as they are: bytes raw, anything else as the JSON of one event.

    `cut` slices the whole stream into chunks of so many bytes.
    """
    data = [item if isinstance(item, bytes) else event(item) for item in sent]
    if ending == "done":
        data.append(b"data: [DONE]\n\n")
    if together or cut:
        joined = b"".join(data)
        size = cut or len(joined)
        data = [joined[start : start + size] for start in range(0, len(joined), size)]

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.start()
        await _send(reply, data, delay)
        await _end(reply, ending)

    return script


def refuse(
    status: int,
    error: object = "refused",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Script:
    """Refuse with a status: an error object or its message, or any `body`."""
    content = {"message": error} if isinstance(error, str) else error

    async def script(_: ChatRequest, reply: Reply) -> None:
        reply.extra.extend((headers or {}).items())
        if body is None:
            await reply.json({"error": content}, status=status)
        else:
            await reply.send(body, status=status, content_type="text/plain")

    return script


def whole(data: object) -> Script:
    """Send one JSON body with status 200, also to who asked for a stream."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.json(data)

    return script


def html() -> Script:
    """Send a web page with status 200."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        page = b"<!doctype html><html><body>Welcome</body></html>"
        await reply.send(page, content_type="text/html")

    return script


def hang() -> Script:
    """Say nothing at all until the client goes away."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.closed_by_client()

    return script


def reset() -> Script:
    """Break the connection before the first byte."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        reply.reset()

    return script


def heartbeats(every: float = 0.02) -> Script:
    """Send comments for ever, and never a token."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.start()
        while True:
            await reply.chunk(b": keep-alive\n\n")
            await asyncio.sleep(every)

    return script


def slow_head(every: float = 0.02) -> Script:
    """Send the head of the reply byte by byte, and never its end."""

    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            await reply.raw(b"x")
            await asyncio.sleep(every)

    return script


def by_key(scripts: Mapping[str, Script]) -> Callable[[ChatRequest], Script]:
    """Reply to each key as its script says."""
    return lambda request: scripts[request.key]


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


def event(data: object) -> bytes:
    """Return one server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def delta(
    content: object = None,
    *,
    finish: str | None = None,
    model: str = "scripted",
    **fields: Any,
) -> dict[str, Any]:
    """Return one frame of a stream."""
    held = fields if content is None else {"content": content, **fields}
    choice = {"index": 0, "delta": held, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [choice],
    }


def words(text: str) -> list[str]:
    """Cut a text after its spaces, and Chinese after every second character."""
    pieces: list[str] = []
    for part in text.replace(" ", " \0").split("\0"):
        step = 2 if any("\u4e00" <= character <= "\u9fff" for character in part) else 20
        pieces += [part[start : start + step] for start in range(0, len(part), step)]
    return pieces


def text_of(content: object) -> str:
    """Return the text of a message's content, a string or blocks."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


def _completion(
    deltas: Sequence[Mapping[str, Any]], message: Mapping[str, Any], how: How
) -> Script:
    finish, usage = how.get("finish", "stop"), how.get("usage", (12, 7))
    wait, delay = how.get("wait", 0), how.get("delay", 0)
    ending, model = how.get("ending", "done"), how.get("model", "scripted")
    counted = None if usage is None else _usage(usage)
    sent: list[bytes] = [event(delta(model=model, **held)) for held in deltas]
    if finish is not None:
        sent.append(event(delta(model=model, finish=finish)))

    async def script(request: ChatRequest, reply: Reply) -> None:
        if wait:
            await asyncio.sleep(wait)
        if not request.body.get("stream"):
            choice = {
                "index": 0,
                "message": {"role": "assistant", **message},
                "finish_reason": finish,
            }
            await reply.json({"model": model, "choices": [choice], "usage": counted})
            return
        data = list(sent)
        if counted and (request.body.get("stream_options") or {}).get("include_usage"):
            data.append(event({"model": model, "choices": [], "usage": counted}))
        if ending == "done":
            data.append(b"data: [DONE]\n\n")
        await reply.start()
        await _send(reply, [b"".join(data)] if how.get("together") else data, delay)
        await _end(reply, ending)

    return script


async def _send(reply: Reply, data: Sequence[bytes], delay: float) -> None:
    for number, part in enumerate(data):
        if delay and number:
            await asyncio.sleep(delay)
        await reply.chunk(part)


async def _end(reply: Reply, ending: Ending) -> None:
    if ending == "reset":
        reply.reset()
    elif ending == "stall":
        await reply.closed_by_client()
    else:
        await reply.end()


def _usage(usage: tuple[int, int]) -> dict[str, int]:
    read, written = usage
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


def _is_rewriting(request: ChatRequest) -> bool:
    asked = request.instructions.lower()
    return any(words in asked for words in ("stand alone", "standalone", "stands alone"))


def _lookup(table: Mapping[str, Found], question: str) -> Found | None:
    for key, value in table.items():
        if question == key or question.endswith(key):
            return value
    return None
