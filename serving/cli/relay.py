"""Passes the output of a server on: all of it to a file, what matters to the terminal."""

import json
import logging
import re
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from chatbot.logs import OURS, RENDERERS, one_line, open_log_file
from chatbot.redaction import redaction
from chatbot.settings import Settings

KEPT_FOR_FAILURE = 200  # lines
_OURS = re.compile(r"<class 'chatbot\.errors\.\w+'>\((?P<reason>.*)\)", re.DOTALL)
_OF_THE_SERVER = (
    "thread_name",
    "langgraph_",
    "api_",
    "run_",
    "graph_",
    "assistant_id",
    "request_",
)


class Relay:
    """Reads the server's lines, which are JSON records for the most part.

    The server's own errors are shown only once it is `ready`: until then it ends by them, and
    `failure` says why.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._redact = redaction(settings)
        self._render = RENDERERS[settings.log_format]
        self.ready = False
        self._all = settings.log_level == "DEBUG"
        self.path = folder / "server.log"
        self._file = open_log_file(self.path)
        self._failed: deque[object] = deque(maxlen=KEPT_FOR_FAILURE)  # runs that were told
        self._last: deque[str] = deque(maxlen=KEPT_FOR_FAILURE)

    def run(self, lines: Iterable[str]) -> None:
        """Pass lines on until there are no more."""
        for line in lines:
            clean = self._redact(line.rstrip("\n"))
            self._last.append(clean)
            record = _record(clean)
            if record is not None and not self._all and (reason := _known_failure(record)):
                clean = self._in_one_line(record, reason)
                record = _record(clean)
            if clean:
                self._file.emit(logging.makeLogRecord({"msg": clean}))
            if record is None:
                if self._all:
                    _show(clean)
            elif self._all or self._matters(record):
                _show(self._render(None, "", _without_server_fields(record)))
        self._file.close()

    def _in_one_line(self, record: dict[str, Any], reason: str) -> str:
        """Return what is told of a run that ended by an error of ours: once, without a trace.

        What was no error of ours has its trace in a line of ours before.
        """
        run = record.get("run_id")
        if run in self._failed:
            return ""
        self._failed.append(run)
        del record["exception"]
        return json.dumps({**record, "event": f"a run failed: {reason}"}, ensure_ascii=False)

    def failure(self) -> tuple[str, str] | None:
        """Return the name of the last error that the server told, and its reason."""
        for line in reversed(self._last):
            record = _record(line)
            text = str(record.get("exception") or record.get("event", "")) if record else line
            for part in reversed(text.strip().splitlines()):
                name, colon, reason = part.partition(": ")
                if colon and name.endswith(("Error", "Exception")) and " " not in name:
                    return name.rpartition(".")[2], reason
        return None

    def _matters(self, record: dict[str, Any]) -> bool:
        ours = str(record.get("logger", "")).split(".")[0] in OURS
        return ours or (self.ready and record.get("level") in {"error", "critical"})


def _record(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _known_failure(record: Mapping[str, Any]) -> str:
    """Return for people why a run failed, or nothing where that needs a trace."""
    if not str(record.get("logger")).startswith("langgraph_") or "exception" not in record:
        return ""
    found = _OURS.search(str(record.get("event")))
    return found["reason"] if found else ""


def _without_server_fields(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in record.items() if not name.startswith(_OF_THE_SERVER)
    }


def _show(line: Any) -> None:  # noqa: ANN401 - what a renderer of structlog returns
    # A terminal that is gone must not stop the reading: the server would wait for it.
    with suppress(OSError):
        print(one_line(str(line)), file=sys.stderr, flush=True)  # noqa: T201
