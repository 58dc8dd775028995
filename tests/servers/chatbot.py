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


class ChatbotServer:
    """A running server of ours, and what may be done to it."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{port}"
        self.log = log

    def kill(self) -> None:
        """End it and what it started at once, as `kill -9` does."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """Let it stand still: connections stay open and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it in order, if it is still there."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=20)

    def end(self, number: signal.Signals) -> None:
        """Send it a signal that ends it, as a terminal or a supervisor does."""
        self._process.send_signal(number)

    def exit_code(self) -> int:
        """Wait until it has ended by itself."""
        return self._process.wait(timeout=60)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def children(self) -> list[int]:
        """Return the processes that it started."""
        pid = self._process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(child) for child in found.split()]

    def wait_until_ready(self) -> None:
        give_up = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up and self._process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        message = f"the server did not start:\n{self.log.read_text(encoding='utf-8')}"
        raise AssertionError(message)

    def _signal(self, number: signal.Signals) -> None:
        """Send it to the process and to its children, which do not outlive it otherwise."""
        for each in (*self.children(), self._process.pid):
            os.kill(each, number)


@contextmanager
def chatbot_server(
    data_dir: Path, *command: str, settings: Mapping[str, str] | None = None
) -> Iterator[ChatbotServer]:
    """Run `chatbot dev` or `chatbot serve` and yield it once it answers."""
    port = free_port()
    log = data_dir / f"{command[0]}-{port}.log"
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
    server = ChatbotServer(process, port, log)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


@contextmanager
def running_chatbot(
    data_dir: Path, *command: str, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run `chatbot dev` or `chatbot serve` and yield its address once it answers."""
    with chatbot_server(data_dir, *command, settings=settings) as server:
        yield server.url
