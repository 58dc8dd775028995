"""Turns PDF, Word, Excel and web pages into text, in a process that ends when it takes long."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Self, cast

from chatbot.knowledge.local.reading import UnreadableError

SECONDS = 120.0  # until the next page must be there
_LOOK_SECONDS = 0.1  # how soon an interruption is noticed
_PROCESS = Path(__file__).with_name("conversion_process.py")
# Nothing else of the environment: the keys in it are nothing for a parser of foreign files.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")


class Converter:
    """Converts files one after the other; its process starts with the first.

    A page that takes longer than `seconds`, or all of the memory, ends the process: the next
    file gets another. `closing` ends the conversion that is under way.
    """

    def __init__(
        self, *, seconds: float = SECONDS, closing: threading.Event | None = None
    ) -> None:
        self._seconds = seconds
        self._closing = closing or threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._listener: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    @property
    def process_id(self) -> int | None:
        """The id of its process, while it lives."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def convert(self, suffix: str, content: bytes) -> Sequence[str]:
        """Return the text of each page; files without pages have one, in Markdown.

        Raises:
            UnreadableError: It cannot be read, for the reason given.
        """
        pages: list[str] = []
        try:
            self._send(suffix, content)
            while not (answer := json.loads(self._answer())).get("end"):
                if problem := answer.get("problem"):
                    raise UnreadableError(problem)
                pages.append(answer["page"])
        except (OSError, json.JSONDecodeError):  # it died: of a limit, or of the file
            self._end()
            message = "it cannot be read: the conversion broke off"
            raise UnreadableError(message) from None
        return pages

    def _send(self, suffix: str, content: bytes) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._start()
        stdin = cast("IO[bytes]", process.stdin)
        request = json.dumps({"suffix": suffix, "size": len(content)}).encode()
        stdin.write(request + b"\n" + content)
        stdin.flush()

    def _answer(self) -> bytes:
        end = time.monotonic() + self._seconds
        message = "it was not read to the end"
        while not self._closing.is_set():
            left = end - time.monotonic()
            if left <= 0:
                message = f"a page of it takes longer than {self._seconds:g} s"
                break
            try:
                return self._answers.get(timeout=min(left, _LOOK_SECONDS))
            except Empty:
                continue
        self._end()
        raise UnreadableError(message)

    def _start(self) -> subprocess.Popen[bytes]:
        self._end()
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        process = subprocess.Popen(  # noqa: S603 - a program of ours
            [sys.executable, "-I", str(_PROCESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._process, self._answers = process, SimpleQueue()
        self._listener = threading.Thread(
            target=_listen,
            args=(cast("IO[bytes]", process.stdout), self._answers),
            name="knowledge-conversion",
            daemon=True,
        )
        self._listener.start()
        return process

    def _end(self) -> None:
        if self._process is None or self._listener is None:
            return
        self._process.kill()
        self._process.wait()
        self._listener.join()
        with suppress(OSError):  # what it did not read is lost
            cast("IO[bytes]", self._process.stdin).close()
        self._process = None


def _listen(answers: IO[bytes], queue: SimpleQueue[bytes]) -> None:
    """Hand on what the process answers, at last nothing: reading a pipe cannot time out."""
    with answers:
        for line in answers:
            queue.put(line)
    queue.put(b"")
