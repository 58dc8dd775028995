"""The `chatbot` command in a process of its own, with or without a terminal."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

SECONDS = 40.0
SIZE = (24, 80)
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Makes the terminal that is its stdin its own, so that Ctrl-C reaches it, and runs the rest.
_OWN = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'serving.cli', *sys.argv[1:]])"
)


@dataclass(frozen=True, kw_only=True)
class Result:
    code: int
    out: str
    err: str


def environment(data_dir: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    known = {"CHATBOT_DATA_DIR": str(data_dir), "PYTHONUTF8": "1", "TERM": "xterm-256color"}
    return {**os.environ, **known, **(settings or {})}


def run(
    data_dir: Path,
    *arguments: str,
    settings: Mapping[str, str] | None = None,
    text: str = "",
    cwd: Path | None = None,
) -> Result:
    """Run the command to its end, in pipes."""
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "serving.cli", *arguments],
        env=environment(data_dir, settings),
        input=text,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
        cwd=cwd,
    )
    return Result(code=done.returncode, out=done.stdout, err=done.stderr)


class Terminal:
    """The command in a terminal of 24 lines and 80 columns. Used as a context manager."""

    def __init__(
        self, data_dir: Path, *arguments: str, settings: Mapping[str, str] | None = None
    ) -> None:
        self._arguments = arguments
        self._environment = environment(data_dir, settings)
        self.raw = ""
        self._seen = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Self:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self.process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", _OWN, *self._arguments],
            env=self._environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    def type(self, text: str) -> None:
        """Press the keys of `text`; `\\x03` is Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._master, text.encode())

    def until(self, words: str) -> str:
        """Return what was shown since the last call, without codes, up to and with `words`."""
        give_up = time.monotonic() + SECONDS
        while words not in (shown := _CODES.sub("", self.raw)[self._seen :]):
            ready, _, _ = select.select([self._master], [], [], 1.0)
            try:
                data = os.read(self._master, 65536) if ready else b""
            except OSError:  # the program has left
                give_up = 0
                data = b""
            self.raw += self._decoder.decode(data)
            if not data and time.monotonic() > give_up:
                message = f"{words!r} was not shown, but:\n{shown}"
                raise AssertionError(message)
        found = shown[: shown.index(words) + len(words)]
        self._seen += len(found)
        return found

    def code(self) -> int:
        """Return the exit code, once the program has left."""
        return self.process.wait(timeout=SECONDS)
