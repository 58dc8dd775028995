"""A model behind OpenAI's API that answers at a pace of its own, in a process of its own.

    python -m benchmarks.model_server      prints its port and serves

The last message of a request may hold a `Pace`. A request with tools is a router's: where that
message says "hello" it is sent to the general chat, else to the knowledge base. The first token
of any reply comes after `FIRST_TOKEN`, unless a pace was asked for. Who does not want a stream
waits for all of it. `GET /calls` tells how many calls there were.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.steps import OF_SERVICES

FIRST_TOKEN = 0.3
GAP = 0.02  # 50 tokens a second
ANSWER_TOKENS = 60
SMALL_TALK = "hello"
SUBJECT = "X200"  # of the questions, and of the assistant that knows about it
_PACE = re.compile(r"(\d+) tokens, ([\d.]+) s apart, (\d+) at once")


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many tokens are sent, and how: each write is drained, so that it is one read."""

    tokens: int = ANSWER_TOKENS
    gap: float = GAP
    burst: int = 1

    def __str__(self) -> str:
        """Return the words that ask the server for this pace."""
        return f"{self.tokens} tokens, {self.gap} s apart, {self.burst} at once"

    @classmethod
    def asked_for(cls, text: str) -> Self | None:
        """Return the pace that the text asks for, if it does."""
        found = _PACE.search(text)
        if found is None:
            return None
        return cls(tokens=int(found[1]), gap=float(found[2]), burst=int(found[3]))


@contextmanager
def served(module: str = "benchmarks.model_server") -> Iterator[str]:
    """Run a server's module in a process of its own and yield its address."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(  # noqa: S603 - ourselves
        command,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C is for the one who measures, and who ends this then
    ) as server:
        os.sched_setaffinity(server.pid, OF_SERVICES)
        assert server.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


async def _serve() -> None:
    server = await asyncio.start_server(_handle, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


calls = 0


async def _handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if head.startswith(b"GET"):
                body = str(calls).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                )
                continue
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await _reply(writer, json.loads(await reader.readexactly(length)))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _reply(writer: asyncio.StreamWriter, request: Mapping[str, Any]) -> None:
    global calls  # noqa: PLW0603 - of this process, which does nothing else
    calls += 1
    content = request["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    pace = Pace.asked_for(text)
    await asyncio.sleep(0 if pace else FIRST_TOKEN)
    if tools := request.get("tools"):
        deltas, gap, burst = _call(text, tools), GAP, 1
    else:
        pace = pace or Pace()
        deltas, gap, burst = [_WORD] * pace.tokens, pace.gap, pace.burst
    if not request.get("stream"):
        await asyncio.sleep(len(deltas) / burst * gap)
        body = _whole(deltas)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        await writer.drain()
        return
    frames = [_WORD_FRAME if delta is _WORD else _frame(delta, None) for delta in deltas]
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    for start in range(0, len(frames), burst):
        for frame in frames[start : start + burst]:
            writer.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        await writer.drain()
        await asyncio.sleep(gap)
    last = _frame({}, "stop") + b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))
    await writer.drain()


def _call(text: str, tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the deltas of a router's call: the name, then the arguments in a few pieces."""
    name, arguments = "general_chat", "{}"
    if SMALL_TALK not in text:
        name = "knowledge_base"
        properties = tools[0]["function"]["parameters"]["properties"]
        names = properties["assistants"]["items"]["enum"]
        wanted: dict[str, Any] = {"assistants": [each for each in names if SUBJECT in each]}
        if "question" in properties:
            wanted["question"] = f"{text} The warranty of the {SUBJECT} pump is meant."
        arguments = json.dumps(wanted)
    function = {"name": name, "arguments": ""}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": function}]
    size = max(1, -(-len(arguments) // 5))
    calls += [
        {"index": 0, "function": {"arguments": arguments[start : start + size]}}
        for start in range(0, len(arguments), size)
    ]
    return [{"tool_calls": [call]} for call in calls]


def _whole(deltas: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the reply to who does not want a stream."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for delta in deltas:
        if text := delta.get("content"):
            message["content"] = (message["content"] or "") + text
        for call in delta.get("tool_calls", ()):
            whole = message.setdefault(
                "tool_calls", [{**call, "function": {**call["function"]}}]
            )
            if "name" not in call["function"]:
                whole[0]["function"]["arguments"] += call["function"]["arguments"]
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
    data = {**_HEAD, "object": "chat.completion", "usage": usage, "choices": [choice]}
    return json.dumps(data).encode()


def _frame(delta: Mapping[str, Any], finish: str | None) -> bytes:
    data = {
        **_HEAD,
        "object": "chat.completion.chunk",
        "usage": {"prompt_tokens": 900, "completion_tokens": 60} if finish else None,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return f"data: {json.dumps(data)}\n\n".encode()


_HEAD = {
    "id": "chatcmpl-00000000000000000000000000000000",
    "created": 1790000000,
    "model": "benchmark",
    "system_fingerprint": None,
}
_WORD = {"content": "token "}
_WORD_FRAME = _frame(_WORD, None)


if __name__ == "__main__":
    asyncio.run(_serve())
