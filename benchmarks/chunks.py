"""What a chunk of a model's answer costs, and whether many streams slow each other.

    python -m benchmarks.chunks

A server in a process of its own sends answers token by token, one socket read each; the last
columns are about 8 tokens at once, and about 50 tokens of 20 ms each. The same run measures
aiohttp without any model library, the OpenAI SDK, LangChain's ChatOpenAI, and our model on its
own and in its pool: the ratios count, the absolute figures belong to the machine.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import aiohttp

from chatbot.models.endpoints import Endpoint, ModelChoice
from chatbot.settings import Settings

TOKENS = 1000
STREAMS = 200
STREAM_TOKENS = 50
STREAM_DELAY = 0.02
ROUNDS = 5


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A client, ready to stream, and what closes it."""

    stream: Callable[[str], AsyncIterator[object]]
    close: Callable[[], Awaitable[object]]


async def serve() -> None:
    """Answer `tokens,delay,batch` (the model's name) with so many frames."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                await _answer(writer, *(float(part) for part in body["model"].split(",")))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


async def _answer(
    writer: asyncio.StreamWriter, tokens: float, delay: float, batch: float
) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    frame = _frame({"content": "token "}, None)
    for number in range(int(tokens)):
        if number % batch == 0:
            await asyncio.sleep(delay)
        writer.write(b"%x\r\n%s\r\n" % (len(frame), frame))
    last = _frame({}, "stop") + b"data: [DONE]\n\n"
    writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))
    await writer.drain()


def _frame(delta: Mapping[str, str], finish: str | None) -> bytes:
    data = {
        "id": "chatcmpl-00000000000000000000000000000000",
        "object": "chat.completion.chunk",
        "created": 1790000000,
        "model": "benchmark",
        "system_fingerprint": None,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return f"data: {json.dumps(data)}\n\n".encode()


def open_bare(url: str) -> Opened:
    """Open aiohttp with a line reader and json, the least there can be."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def stream(model: str) -> AsyncIterator[object]:
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])["choices"][0]["delta"].get("content")

    return Opened(stream=stream, close=session.close)


def open_sdk(url: str) -> Opened:
    """Open the OpenAI SDK."""
    import openai  # noqa: PLC0415 - only one of several clients

    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def stream(model: str) -> AsyncIterator[object]:
        async for chunk in await client.chat.completions.create(
            model=model, stream=True, messages=[{"role": "user", "content": "hi"}]
        ):
            yield chunk.choices[0].delta.content

    return Opened(stream=stream, close=client.close)


def open_chat_openai(url: str) -> Opened:
    """Open LangChain's model as it is."""
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - only one of several clients

    models: dict[str, ChatOpenAI] = {}

    def stream(model: str) -> AsyncIterator[object]:
        if model not in models:
            models[model] = ChatOpenAI(model=model, base_url=url, api_key="none")
        return models[model].astream("hi")

    return Opened(stream=stream, close=lambda: asyncio.sleep(0))


def open_ours(url: str, *, pool: bool) -> Opened:
    """Open our model, in its pool or alone."""
    from chatbot.models.building import build  # noqa: PLC0415 - only one of several clients
    from chatbot.models.openai_compatible import OpenAICompatibleModel  # noqa: PLC0415 - same
    from chatbot.models.streamed_model import StreamedModel  # noqa: PLC0415 - same

    models: dict[str, StreamedModel] = {}

    def stream(model: str) -> AsyncIterator[object]:
        if model not in models:
            endpoint = Endpoint(provider="openai", model=model, base_url=url)
            models[model] = (
                build(ModelChoice(endpoints=[endpoint]), Settings())
                if pool
                else OpenAICompatibleModel(model=model, base_url=url)
            )
        return models[model].astream("hi")

    async def close() -> None:
        for model in models.values():
            await model.aclose()

    return Opened(stream=stream, close=close)


CLIENTS: Mapping[str, Callable[[str], Opened]] = {
    "aiohttp and json alone": open_bare,
    "OpenAI SDK": open_sdk,
    "ChatOpenAI.astream": open_chat_openai,
    "ours alone, astream": lambda url: open_ours(url, pool=False),
    "ours in the pool, astream": lambda url: open_ours(url, pool=True),
}


async def cost(opened: Opened, tokens: int, delay: float, batch: int) -> float:
    """Return the CPU time of one token in microseconds, of the quietest of some rounds."""
    model = f"{tokens},{delay},{batch}"
    async for _ in opened.stream(f"20,{delay},{batch}"):
        pass
    async for _ in opened.stream(model):
        pass
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        async for _ in opened.stream(model):
            pass
        times.append((time.process_time() - started) / tokens * 1e6)
    return min(times)


async def crowd(opened: Opened, streams: int) -> float:
    """Return how long an answer takes among so many, in milliseconds: 19 of 20 are faster."""
    model = f"{STREAM_TOKENS},{STREAM_DELAY},1"

    async def one() -> float:
        started = time.perf_counter()
        async for _ in opened.stream(model):
            pass
        return (time.perf_counter() - started) * 1000

    await one()
    times = sorted(await asyncio.gather(*(one() for _ in range(streams))))
    return times[int(0.95 * len(times))]


async def measure(url: str) -> None:
    """Print a row of figures for each client."""
    _print("client", "µs a token", "ratio", "µs, 8 at once", "ms alone", "ms of 200 at once")
    least = 0.0
    for name, open_client in CLIENTS.items():
        opened = open_client(url)
        single = await cost(opened, TOKENS, 0.001, 1)
        together = await cost(opened, TOKENS, 0.004, 8)
        alone = await crowd(opened, 1)
        crowded = await crowd(opened, STREAMS)
        await opened.close()
        least = least or single
        figures = (single, single / least, together, alone, crowded)
        _print(name, *(f"{figure:.1f}" for figure in figures))


def _print(*cells: str) -> None:
    first, *others = cells
    sys.stdout.write(f"{first:28}{''.join(f'{cell:>18}' for cell in others)}\n")
    sys.stdout.flush()


def main() -> None:
    """Start the server and print the table."""
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
        return
    command = [sys.executable, "-m", "benchmarks.chunks", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - ourselves
        assert server.stdout is not None  # noqa: S101 - it is a pipe
        port = server.stdout.readline().strip()
        try:
            asyncio.run(measure(f"http://127.0.0.1:{port}/v1"))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
