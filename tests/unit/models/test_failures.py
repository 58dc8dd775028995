"""How what endpoints and packages say becomes a typed error."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatbot.models.failures import (
    cleaned,
    error_of_exception,
    error_of_frame,
    error_of_status,
    seconds_to_wait,
)

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("3", 3, id="seconds"),
        pytest.param("1.5", 1.5, id="part of a second"),
        pytest.param("-4", 0, id="less than nothing"),
        pytest.param("Fri, 01 May 2026 12:00:30 GMT", 30, id="a date"),
        pytest.param("Fri, 01 May 2026 14:00:30 +0200", 30, id="a date elsewhere"),
        pytest.param("Fri, 01 May 2026 23:00:00 GMT", 600, id="a date far off"),
        pytest.param("inf", 600, id="for ever"),
        pytest.param("nan", None, id="no number"),
        pytest.param("", None, id="nothing"),
        pytest.param("tomorrow", None, id="a word"),
    ],
)
def test_how_long_to_wait(value: str, seconds: float | None) -> None:
    assert seconds_to_wait({"Retry-After": value}, NOW) == seconds


class PackageError(Exception):
    """An error as the packages of other providers have them."""

    def __init__(self, message: str = "no", **facts: object) -> None:
        super().__init__(message)
        for name, value in facts.items():
            setattr(self, name, value)


class RateLimitError(PackageError):
    """Tells by its name."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(PackageError(status_code=429), "rate_limit", id="a status"),
        pytest.param(PackageError(code=401), "auth", id="a code"),
        pytest.param(
            PackageError(response=SimpleNamespace(status_code=503, headers={})), "server",
            id="a response",
        ),
        pytest.param(
            PackageError("prompt is too long: 9 > 8", status_code=400), "context_too_long",
            id="a status and words",
        ),
        pytest.param(RateLimitError(), "rate_limit", id="a name"),
        pytest.param(TypeError("unexpected 'seed'"), "bad_request", id="a parameter"),
        pytest.param(PackageError("Connection error."), "connection", id="words"),
        pytest.param(PackageError("Request timed out."), "timeout", id="other words"),
        pytest.param(PackageError("boom", code="odd"), "server", id="nothing to go by"),
    ],
)  # fmt: skip
def test_exceptions_of_other_packages(error: Exception, kind: str) -> None:
    assert error_of_exception(error, "m").kind == kind


@settings(deadline=None)
@given(st.text(max_size=400))
def test_details_are_one_short_line(text: str) -> None:
    line = cleaned(text)
    assert line.isprintable()
    assert len(line) <= 301


@settings(deadline=None)
@given(st.integers(100, 599), st.binary(max_size=60))
def test_any_refusal_is_an_error(status: int, body: bytes) -> None:
    assert error_of_status(status, {}, body, "m").message.endswith((".", "!", "?", "。", "…"))


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["error", "code", "message", "type", "status"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(["code", "message", "type"]), inner, max_size=3
                )
            ),
            max_leaves=6,
        ),
    )
)
def test_any_error_in_a_frame_is_an_error(frame: dict[str, object]) -> None:
    assert error_of_frame(json.loads(json.dumps(frame)), "m").message
