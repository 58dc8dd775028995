"""What the scripted model server can say."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack

from tests.servers.loopback import Reply

Ending = Literal["done", "close", "reset", "stall"]
Usage = tuple[int, int] | None


class How(TypedDict, total=False):
    """How a completion is sent: what ends it, and when its frames go out."""

    finish: str | None  # "stop", "tool_calls"; None leaves it out
    usage: Usage  # tokens read and written
    wait: float | threading.Event  # seconds before the first frame, or for what it comes
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


def by_key(scripts: Mapping[str, Script]) -> Callable[[ChatRequest], Script]:
    """Reply to each key as its script says."""
    return lambda request: scripts[request.key]


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
        if isinstance(wait, threading.Event):
            await _set(wait)
        elif wait:
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


async def _set(event: threading.Event) -> None:
    while not event.is_set():  # noqa: ASYNC110 - it is set in another thread
        await asyncio.sleep(0.005)


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
