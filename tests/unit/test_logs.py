import io
import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from chatbot.logs import (
    OURS,
    QUESTIONS,
    configure_logging,
    log_to_file,
    one_line,
)
from chatbot.redaction import REMOVED, Redaction, secrets_in
from chatbot.settings import Settings

KEY = "sk-0123456789abcdef"
PASSWORD = "p%40ss-word-of-mongodb"


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    levels = {name: logging.getLogger(name).level for name in ("", *OURS, QUESTIONS)}
    handlers = root.handlers[:]
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def logged(message: str, *, settings: Settings | None = None, **extra: Any) -> str:
    """Return what one record of ours becomes."""
    stream = io.StringIO()
    configure_logging(settings or Settings(), stream=stream)
    logging.getLogger("graphs.keeping").info(message, extra=extra)
    return stream.getvalue()


def test_json_line_holds_the_fields_of_the_record() -> None:
    settings = Settings(log_format="json")
    line = logged("turn ended", settings=settings, turn_id="t1", assistants=["员工手册"])

    record = json.loads(line)
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "turn ended",
        "level": "info",
        "logger": "graphs.keeping",
        "turn_id": "t1",
        "assistants": ["员工手册"],
    }
    assert "员工手册" in line


def test_text_line_holds_the_fields_of_the_record() -> None:
    line = logged("turn ended", turn_id="t1", reason="two words", assistants=["员工手册"])

    assert line.endswith(
        ' INFO    graphs.keeping: turn ended turn_id=t1 reason="two words" '
        'assistants=["员工手册"]\n'
    )


def test_records_of_structlog_go_the_same_way() -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_format="json"), stream=stream)
    logger = structlog.get_logger("chatbot.models.pool")
    logger.warning("it failed", endpoint="通义", key=KEY)
    logger.debug("not shown")

    record = json.loads(stream.getvalue())
    assert record.pop("timestamp")
    assert record == {
        "event": "it failed",
        "level": "warning",
        "logger": "chatbot.models.pool",
        "endpoint": "通义",
        "key": KEY,
    }


@pytest.mark.parametrize(
    "form",
    [pytest.param("text", id="text"), pytest.param("json", id="JSON")],
)
@pytest.mark.parametrize(
    "words",
    [
        pytest.param("first\nERROR forged: second", id="line break"),
        pytest.param("a\r\nb", id="carriage return"),
        pytest.param("\x1b[2J", id="terminal code"),
        pytest.param("a\x85b\u2028c", id="line breaks of Unicode"),
        pytest.param("half a pair \ud83d", id="lone surrogate"),
        pytest.param("%s {} $x", id="formats"),
    ],
)
def test_a_record_is_one_line(words: str, form: Any) -> None:
    settings = Settings(log_format=form)
    for line in (
        logged(words, settings=settings),
        logged("event", settings=settings, question=words),
    ):
        assert line.splitlines() == [line.removesuffix("\n")]
        assert "\x1b" not in line
        line.encode()


def test_trace_of_an_error_is_part_of_its_line() -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_format="json"), stream=stream)
    try:
        raise ValueError(KEY)  # noqa: TRY301 - an error with its trace
    except ValueError:
        logging.getLogger("chatbot").exception("it failed")

    assert "ValueError" in json.loads(stream.getvalue())["exception"]
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    "form",
    [pytest.param("text", id="text"), pytest.param("json", id="JSON")],
)
@pytest.mark.parametrize(
    "secret",
    [
        pytest.param(KEY, id="a key"),
        pytest.param("second-key-of-two", id="one of several keys"),
        pytest.param(PASSWORD, id="password as in the address"),
        pytest.param("p@ss-word-of-mongodb", id="password as it is"),
        pytest.param(f"mongodb://user:{PASSWORD}@db:27017/", id="the whole address"),
    ],
)
def test_secrets_of_the_settings_are_removed(secret: str, form: Any) -> None:
    settings = Settings(
        log_format=form,
        dashscope_api_key=SecretStr(f"{KEY}, second-key-of-two"),
        mongodb_uri=SecretStr(f"mongodb://user:{PASSWORD}@db:27017/"),
    )
    for line in (
        logged(f"failed with {secret}!", settings=settings),
        logged("failed", settings=settings, headers={"x": [secret]}),
    ):
        assert secret not in line
        assert REMOVED in line


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        pytest.param("http://host:9380/v1?page=2", set(), id="none"),
        pytest.param("not an address", set(), id="no address"),
        pytest.param("http://[half", set(), id="a broken address"),
        pytest.param(
            "http://ann:p%40ss@host",
            {"p%40ss", "p@ss", b64encode(b"ann:p@ss").decode()},
            id="a password, also as it is sent",
        ),
        pytest.param(
            "http://a-token@host",
            {"a-token", b64encode(b"a-token:").decode()},
            id="a token in the user's place",
        ),
        pytest.param("http://host/?api-key=abc&x=1", {"abc"}, id="a key in the query"),
        pytest.param(
            "mongodb://host/?tlsCertificateKeyFile=/a.pem&tlsCertificateKeyFilePassword=abc"
            "&authMechanismProperties=AWS_SESSION_TOKEN:d%2Fe,X:y",
            {"abc", "d%2Fe", "d/e"},
            id="options of MongoDB",
        ),
    ],
)
def test_what_signs_in_within_an_address(address: str, secrets: set[str]) -> None:
    assert secrets_in(address) == secrets


def test_a_password_in_any_address_of_the_settings_is_removed() -> None:
    settings = Settings(openai_base_url=f"http://user:{PASSWORD}@host/v1")
    sent = b64encode(b"user:p@ss-word-of-mongodb").decode()
    assert sent not in logged(f"Basic {sent} is not known", settings=settings)
    assert PASSWORD not in logged(f"{PASSWORD} is not known", settings=settings)


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        pytest.param(
            "Authorization: Bearer abc.def.ghi", f"Authorization: Bearer {REMOVED}", id="token"
        ),
        pytest.param(
            "redis://user:hidden@host/1",
            f"redis://user:{REMOVED}@host/1",
            id="password in address",
        ),
        pytest.param(
            "http://127.0.0.1:8000/a@b", "http://127.0.0.1:8000/a@b", id="port is none"
        ),
        pytest.param("ask the bearer of news", "ask the bearer of news", id="word is none"),
        pytest.param("保修期多长？", "保修期多长？", id="Chinese"),
    ],
)
def test_what_looks_like_a_secret_is_removed(line: str, clean: str) -> None:
    assert Redaction([])(line) == clean


def test_short_values_do_not_black_out_ordinary_words() -> None:
    assert Redaction(["ollama", ""])("ollama runs") == "ollama runs"


@given(st.text(min_size=8).filter(lambda text: text not in REMOVED), st.text(), st.text())
def test_secret_of_any_text_is_removed(secret: str, before: str, after: str) -> None:
    assert secret not in Redaction([secret])(f"{before} {secret} {after}").replace(REMOVED, "")


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_one_line(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    line.encode()


@pytest.mark.parametrize(
    ("given_settings", "shown"),
    [
        pytest.param({}, {"graphs info", "httpx warning"}, id="by default"),
        pytest.param(
            {"log_level": "DEBUG"},
            {"graphs debug", "graphs info", "httpx info", "httpx warning"},
            id="debugging shows no question",
        ),
        pytest.param(
            {"log_questions": True},
            {"question", "graphs info", "httpx warning"},
            id="questions when asked for",
        ),
        pytest.param({"log_level": "ERROR"}, set(), id="errors alone"),
    ],
)
def test_what_is_logged(given_settings: dict[str, Any], shown: set[str]) -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_format="json", **given_settings), stream=stream)
    for name in ("graphs", "httpx"):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            word = logging.getLevelName(level).lower()
            if (name, word) != ("graphs", "warning"):
                logging.getLogger(name).log(level, "%s %s", name, word)
    logging.getLogger(QUESTIONS).debug("question")

    assert {json.loads(line)["event"] for line in stream.getvalue().splitlines()} == shown


def test_log_file_is_written_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "deep" / "chatbot.log"
    log_to_file(Settings(), path)
    logging.getLogger("chatbot").info("你好")
    logging.getLogger().handlers[0].close()

    assert path.read_text(encoding="utf-8").endswith(" chatbot: 你好\n")
    assert capsys.readouterr() == ("", "")
