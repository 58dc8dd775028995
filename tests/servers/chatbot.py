"""The chatbot's own server, in a process of its own, as `make run` starts it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

START_SECONDS = 120


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_chatbot(
    data_dir: Path, *command: str, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run `chatbot dev` or `chatbot serve` and yield its address once it answers."""
    port = free_port()
    log = data_dir / f"{command[0]}.log"
    environment = {
        **os.environ,
        "CHATBOT_DATA_DIR": str(data_dir),
        "PYTHONUTF8": "1",
        **(settings or {}),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "serving.cli", *command, "--port", str(port)],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(process, url, log)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    message = f"the server did not start:\n{log.read_text(encoding='utf-8')}"
    raise AssertionError(message)
