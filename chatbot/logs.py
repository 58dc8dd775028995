"""Log lines: one for each record, as text or JSON, without the values of secrets."""

import base64
import json
import logging
import logging.handlers
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

import structlog
from pydantic import SecretStr
from structlog.typing import EventDict, Processor, WrappedLogger

from chatbot.settings import Settings

OURS = ("chatbot", "graphs", "serving")
QUESTIONS = "chatbot.questions"
REMOVED = "[secret]"
SHORTEST_SECRET = 8  # shorter values stand in ordinary words too
FILE_BYTES = 4 * 2**20

SECRET_NAME = re.compile(r"(?:_KEY|_TOKEN|_SECRET|_PASSWORD)$", re.IGNORECASE)
_BEARER = re.compile(r"(?P<before>\bBearer\s+)[^\s\"',;]{8,}", re.IGNORECASE)
_OPTION = re.compile(
    r"(?:key|token|secret|password|signature|\bsig)[=:](?P<value>[^&,#]+)", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?P<before>://[^\s/:@\"']*:)[^\s/@\"']+(?=@)")
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


class Redaction:
    """Removes secrets from a line: the known ones, and what stands where one is expected."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
        known = sorted((form for form in forms if len(form) >= SHORTEST_SECRET), key=len)
        self._known = re.compile("|".join(map(re.escape, reversed(known))) or r"(?!)")

    def __call__(self, line: str) -> str:
        """Return the line without secrets."""
        line = self._known.sub(REMOVED, line)
        for pattern in (_BEARER, _USER_INFO):
            line = pattern.sub(rf"\g<before>{REMOVED}", line)
        return line


def redaction(settings: Settings, others: Iterable[str] = ()) -> Redaction:
    """Return what removes the secrets of the settings, of the environment, and the others."""
    secrets = {
        value for name, value in os.environ.items() if value and SECRET_NAME.search(name)
    }
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            secrets |= _parts(value.get_secret_value())
        elif isinstance(value, str):
            secrets |= secrets_in(value)
    return Redaction(secrets.union(others))


def secrets_in(address: str) -> set[str]:
    """Return what signs in within an address, as it stands there and as it is sent."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return set()
    if not parts.netloc:
        return set()
    found = {match["value"] for match in _OPTION.finditer(parts.query)}
    user, password = parts.username or "", parts.password or ""
    if secret := password or user:  # a token may stand in the user's place
        login = f"{unquote(user)}:{unquote(password)}".encode()
        found |= {secret, base64.b64encode(login).decode()}
    return found | {unquote(each) for each in found}


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


def _parts(secret: str) -> set[str]:
    """Return the secret, each key of a list of keys, and what signs in within an address."""
    return {secret, *(key.strip() for key in secret.split(",")), *secrets_in(secret)}


def _shown(value: object) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
