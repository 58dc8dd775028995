"""An HTTP/1.1 server on 127.0.0.1 whose handler decides about every byte, faults included."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the client sent. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(kw_only=True)
class Reply:
    """The way back to the client: whole replies, single chunks, or raw bytes."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    started: bool = False
    keep_alive: bool = True
    extra: list[tuple[str, str]] = field(default_factory=list)

    async def send(
        self, body: bytes, *, status: int = 200, content_type: str = "application/json"
    ) -> None:
        """Send a whole reply with its length."""
        head = [("Content-Type", content_type), ("Content-Length", str(len(body)))]
        await self.raw(self._head(status, [*head, *self.extra]) + body)

    async def json(self, data: object, *, status: int = 200) -> None:
        """Send a JSON reply."""
        await self.send(json.dumps(data, ensure_ascii=False).encode(), status=status)

    async def start(
        self, *, status: int = 200, content_type: str = "text/event-stream"
    ) -> None:
        """Send the head of a chunked reply."""
        head = [("Content-Type", content_type), ("Transfer-Encoding", "chunked")]
        await self.raw(self._head(status, [*head, *self.extra]))

    async def chunk(self, data: bytes) -> None:
        """Send one chunk in one write."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """End a chunked reply cleanly."""
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.started = True
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        self.keep_alive = False
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        """Close the connection after what was sent."""
        self.keep_alive = False

    async def closed_by_client(self) -> None:
        """Return when the client has closed its side."""
        await self.reader.read(1)
        self.keep_alive = False

    def _head(self, status: int, headers: list[tuple[str, str]]) -> bytes:
        lines = [f"HTTP/1.1 {status} status", *(f"{name}: {value}" for name, value in headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


ROUNDS = 4
PAUSE_SECONDS = 0.005
Handler = Callable[[Request, Reply], Awaitable[None]]


class Loopback:
    """Runs `handler` for each request, in an event loop and a thread of its own.

    Used as a context manager. `url` is its address, `requests` are those seen so far. An
    exception in the handler closes the connection and is raised again at the end.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._failures: list[Exception] = []
        self.requests: list[Request] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.resume()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.pause()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._failures and error is None:
            raise self._failures[0]

    def resume(self) -> None:
        """Listen, on the same port as before."""
        self._call(self._listen())

    def pause(self) -> None:
        """Stop listening and break every connection, as a killed server does."""
        self._call(self._stop())

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        # A connection accepted just now has no task yet, and a task that is cancelled before
        # its first step closes nothing: so it is done several times, with time to begin.
        for _ in range(ROUNDS):
            await asyncio.sleep(PAUSE_SECONDS)
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                reply = Reply(writer=writer, reader=reader)
                await self._handler(request, reply)
                if not reply.keep_alive:
                    break
        except asyncio.CancelledError:
            writer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # noqa: BLE001 - reported at the end, to the test
            self._failures.append(error)
        finally:
            await _close(writer)
            self._connections.discard(task)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except (ConnectionError, asyncio.CancelledError):
        writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    if headers.get("transfer-encoding") == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(
        method=method, path=parts.path, query=parse_qs(parts.query), headers=headers, body=body
    )


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body
