"""Log lines: one for each record, as text or JSON, without the values of secrets."""

import json
import logging
import logging.handlers
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from chatbot.redaction import redaction
from chatbot.settings import Settings

OURS = ("chatbot", "graphs", "serving")
QUESTIONS = "chatbot.questions"
FILE_BYTES = 4 * 2**20

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BARE = re.compile(r"[^\s\"'=\[\]{}]+")


def configure_logging(settings: Settings, *, stream: TextIO | None = None) -> None:
    """Write the log of this process to `stream`, by default to stderr, and to nothing else."""
    configure_levels(settings)
    _write_to(logging.StreamHandler(sys.stderr if stream is None else stream), settings)


def log_to_file(settings: Settings, path: Path) -> None:
    """Write the log of this process to a file that is not let grow, and to nothing else.

    Raises:
        OSError: The file cannot be written.
    """
    configure_levels(settings)
    _write_to(open_log_file(path), settings)


def open_log_file(path: Path) -> logging.Handler:
    """Return a handler for a file of which one older part is kept.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    return logging.handlers.RotatingFileHandler(
        path, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8", errors="replace"
    )


def configure_levels(settings: Settings) -> None:
    """Set how much is logged, and leave where it goes to whoever owns the process.

    People's words are logged only with `LOG_QUESTIONS`, whatever `LOG_LEVEL` says.
    """
    level = logging.getLevelNamesMapping()[settings.log_level]
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    others = logging.INFO if level == logging.DEBUG else max(level, logging.WARNING)
    logging.getLogger().setLevel(others)
    shown = logging.DEBUG if settings.log_questions else logging.WARNING
    logging.getLogger(QUESTIONS).setLevel(shown)


def render_text(_: WrappedLogger, __: str, record: EventDict) -> str:
    """Return a record as a line for people: time, level, logger, event, `name=value`."""
    rest = dict(record)
    time, level = str(rest.pop("timestamp", "")), str(rest.pop("level", "")).upper()
    logger, event = str(rest.pop("logger", "")), str(rest.pop("event", ""))
    pairs = [f"{name}={_shown(value)}" for name, value in rest.items()]
    return " ".join((time, f"{level:<7}", f"{logger}:", event, *pairs))


def render_json(_: WrappedLogger, __: str, record: EventDict) -> str:
    """Return a record as a JSON object."""
    return json.dumps(record, ensure_ascii=False, default=str)


RENDERERS: Mapping[str, Processor] = {"text": render_text, "json": render_json}


def one_line(text: str) -> str:
    """Return the text with its line breaks and control characters written out."""
    text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub(lambda found: _ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}"), text)


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _write_to(handler: logging.Handler, settings: Settings) -> None:
    redacted = redaction(settings)

    def finish(_: WrappedLogger, __: str, line: Any) -> str:  # noqa: ANN401 - as structlog's type
        return one_line(redacted(line))

    ours: list[Processor] = [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *ours,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*ours, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                RENDERERS[settings.log_format],
                finish,
            ],
        )
    )
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)


def _shown(value: object) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
