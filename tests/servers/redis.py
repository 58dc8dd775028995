"""A real Redis on 127.0.0.1 that keeps nothing."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.chatbot import free_port

START_SECONDS = 30.0
MISSING = (
    "These tests need Redis: install it (on Debian and Ubuntu: apt-get install redis-server)."
)


@contextmanager
def running_redis() -> Iterator[str]:
    """Yield the address of an empty Redis."""
    program = shutil.which("redis-server")
    if program is None:
        raise RuntimeError(MISSING)
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 - our own command line
        [
            program,
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        _await_answer(process, port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(timeout=20)


def _await_answer(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            time.sleep(0.05)
    message = "Redis did not start"
    raise RuntimeError(message)
