"""Turns what an endpoint says when it fails into a `ModelError` with a sentence for people."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from chatbot.errors import ModelError, ModelFailure
from chatbot.text import without_addresses

LONGEST_RETRY_AFTER = 600.0
DETAIL_LENGTH = 300
REDIRECTS = "it redirects to another address, which is not followed"

_SENTENCES: Mapping[ModelFailure, str] = {
    "rate_limit": "accepts no more requests at the moment. Try again in a minute",
    "auth": "refused the API key. Check the key and its permissions in the settings",
    "bad_request": "refused the request",
    "context_too_long": "cannot read that much. Shorten the question or start a new chat",
    "content_filter": "refused the text because of its content filter. Ask in other words",
    "timeout": "took too long. Try again",
    "connection": "cannot be reached. Check its address and that it runs",
    "server": "failed. Try again later",
    "protocol": "sent something that is not an answer. Check its address",
    "interrupted": "broke off before the answer was complete. Try again",
    "unsupported": "cannot do what was asked",
}

# Wordings of OpenAI, DashScope, vLLM, Ollama, llama.cpp, Anthropic and Gemini.
_WORDINGS: tuple[tuple[ModelFailure, str], ...] = (
    (
        "context_too_long",
        (
            r"context_length_exceeded|context.?(length|window|size)|prompt is too long"
            r"|range of input length|input (length|token).{0,40}exceed|too many (input )?tokens"
            r"|maximum (input|prompt|number of tokens)|input is too long|ContextWindowExceeded"
        ),
    ),
    (
        "content_filter",
        (
            r"content_filter|data_?inspection_?failed|content management policy"
            r"|inappropriate content|content_policy_violation"
        ),
    ),
    (
        "auth",
        (
            r"arrearage|invalid.?api.?key|incorrect api key|authentication|unauthori[sz]ed"
            r"|permission.?denied|access.?denied|AllocationQuota\.FreeTierOnly"
        ),
    ),
    ("rate_limit", r"rate.?limit|throttling|too many requests|insufficient_quota|quota"),
    (
        "unsupported",
        (r"(does|do) not support|not supported|unsupported|requires --enable-auto-tool-choice"),
    ),
    ("timeout", r"time.?out|timed out"),
    ("bad_request", r"invalid_(request|parameter)|bad.?request|not.?found|validation"),
)
_PATTERNS = [(kind, re.compile(words, re.IGNORECASE)) for kind, words in _WORDINGS]
_BY_STATUS: Mapping[int, ModelFailure] = {
    HTTPStatus.UNAUTHORIZED: "auth",
    HTTPStatus.PAYMENT_REQUIRED: "auth",
    HTTPStatus.FORBIDDEN: "auth",
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: "connection",
    HTTPStatus.REQUEST_TIMEOUT: "timeout",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "context_too_long",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit",
}
_ANY: frozenset[ModelFailure] = frozenset(kind for kind, _ in _WORDINGS)
_TOLD_BY_BODY: Mapping[int, frozenset[ModelFailure]] = {
    HTTPStatus.BAD_REQUEST: _ANY - {"timeout"},
    HTTPStatus.FORBIDDEN: frozenset({"content_filter", "rate_limit"}),
    HTTPStatus.NOT_FOUND: frozenset({"unsupported"}),
    HTTPStatus.UNPROCESSABLE_ENTITY: _ANY - {"timeout", "rate_limit", "auth"},
    HTTPStatus.INTERNAL_SERVER_ERROR: frozenset({"context_too_long"}),
}
_CLIENT_ERRORS = HTTPStatus.BAD_REQUEST
_SERVER_ERRORS = HTTPStatus.INTERNAL_SERVER_ERROR
_KEY_LIKE = re.compile(r"\b(?:sk|pk|key|bearer)[-_ ]\S{6,}|[A-Za-z0-9_+*-]{32,}", re.IGNORECASE)


def model_error(
    kind: ModelFailure, endpoint: str, detail: str = "", *, retry_after: float | None = None
) -> ModelError:
    """Return the error of this kind, with a sentence that says what to do."""
    sentence = _SENTENCES[kind]
    if kind == "rate_limit" and retry_after is not None:
        sentence = sentence.replace("a minute", in_words(retry_after))
    message = f"The language model ({endpoint}) {sentence}{f': {detail}' if detail else ''}"
    if not message.endswith((".", "!", "?", "。")):
        message += "."
    return ModelError(kind, message, retry_after=retry_after)


def in_words(seconds: float) -> str:
    """Return how long to wait, in whole seconds, at least one."""
    whole = max(1, math.ceil(seconds))
    return f"{whole} second{'' if whole == 1 else 's'}"


def error_of_status(
    status: int, headers: Mapping[str, str], body: bytes, endpoint: str, secret: str = ""
) -> ModelError:
    """Return the error for a reply with a status other than 200."""
    code, text = _read(body)
    kind = _kind(status, f"{code} {text}")
    if status < _CLIENT_ERRORS:
        redirects = status >= HTTPStatus.MULTIPLE_CHOICES
        return model_error("protocol", endpoint, REDIRECTS if redirects else f"HTTP {status}")
    detail = f"{text or code} (HTTP {status})" if text or code else f"HTTP {status}"
    if kind not in {"bad_request", "unsupported"}:
        detail = ""
    elif status == HTTPStatus.NOT_FOUND:
        detail = f"check the name of the model and the address: {detail}"
    waits = kind == "rate_limit" or status >= _SERVER_ERRORS
    after = seconds_to_wait(headers, datetime.now(UTC)) if waits else None
    return model_error(kind, endpoint, cleaned(detail, secret), retry_after=after)


def error_of_frame(frame: Mapping[str, Any], endpoint: str, secret: str = "") -> ModelError:
    """Return the error that an endpoint sent as data, in a stream or with status 200."""
    code, text = _described(frame)
    status = _status(code)
    kind = _kind(status, f"{code} {text}")
    detail = text or code if kind in {"bad_request", "unsupported"} else ""
    return model_error(kind, endpoint, cleaned(detail, secret))


def error_of_exception(error: Exception, endpoint: str) -> ModelError:
    """Return the error for an exception of another provider's package."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    status = status if isinstance(status, int) else getattr(response, "status_code", None)
    text = f"{type(error).__name__} {error}"
    if isinstance(error, TypeError):  # the package knows no such parameter
        return model_error("bad_request", endpoint, cleaned(str(error)))
    if isinstance(status, int):
        headers = getattr(response, "headers", None) or {}
        body = json.dumps({"message": str(getattr(error, "message", error))}).encode()
        return error_of_status(status, headers, body, endpoint)
    if re.search(r"connect", text, re.IGNORECASE):
        return model_error("connection", endpoint)
    return model_error(_kind(None, text), endpoint)


def seconds_to_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return what Retry-After asks for, as seconds or as a date, between 0 and 600."""
    value = headers.get("Retry-After", "").strip()
    milliseconds = headers.get("Retry-After-Ms", "").strip()  # OpenAI's, the more exact one
    try:
        seconds = float(milliseconds) / 1000 if milliseconds else float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    if math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def cleaned(text: str, secret: str = "") -> str:
    """Return foreign text as one short line, without what looks like a key or an address."""
    if secret:
        text = text.replace(secret, "[key]")
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    text = _KEY_LIKE.sub("[key]", without_addresses(text))
    return text if len(text) <= DETAIL_LENGTH else f"{text[:DETAIL_LENGTH]}…"


def _status(code: str) -> int | None:
    """Return the HTTP status that a code begins with, as vLLM's have."""
    found = re.match(r"[45]\d\d\b", code)
    return int(found[0]) if found else None


def _kind(status: int | None, text: str) -> ModelFailure:
    allowed = _ANY if status is None else _TOLD_BY_BODY.get(status, frozenset())
    for kind, pattern in _PATTERNS:
        if kind in allowed and pattern.search(text):
            return kind
    if status is None:
        return "server"
    return _BY_STATUS.get(status) or ("server" if status >= _SERVER_ERRORS else "bad_request")


def _read(body: bytes) -> tuple[str, str]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
        return "", "" if text.startswith("<") else text
    if isinstance(data, list) and data:  # Gemini wraps its error in a list
        data = data[0]
    return _described(data) if isinstance(data, dict) else ("", "")


def _described(data: Mapping[str, Any]) -> tuple[str, str]:
    error = data.get("error", data)
    if isinstance(error, dict):
        code = " ".join(
            str(error[name]) for name in ("code", "type", "status") if error.get(name)
        )
        text = error.get("message") or error.get("detail") or error.get("msg") or ""
    else:
        code, text = str(data.get("code") or ""), error or ""
    return code, text if isinstance(text, str) else json.dumps(text)
