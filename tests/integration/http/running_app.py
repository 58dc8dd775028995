"""Runs an ASGI app on a real server on 127.0.0.1, in a thread of its own."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

START_SECONDS = 20
CLOSE_SECONDS = 0.02


@contextmanager
def running_app(app: FastAPI) -> Iterator[str]:
    """Serve `app` and yield its address."""
    config = uvicorn.Config(
        app, log_config=None, lifespan="on", ws="none", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(_serve(server, listening)))
    thread.start()
    try:
        give_up = time.monotonic() + START_SECONDS
        while not server.started:
            assert thread.is_alive(), "the app did not start"
            assert time.monotonic() < give_up, "the app did not start in time"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


async def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
    await server.serve(sockets=[listening])
    # What a client left open is closed while there is still a loop that can do it.
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    await asyncio.sleep(CLOSE_SECONDS)
