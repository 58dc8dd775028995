import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from serving.cli.doctor.values import masked, values_of, without_password


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        pytest.param("sk-0123456789abcdefghij", "…ghij", id="long key"),
        pytest.param("short-key", "(set)", id="short key"),
        pytest.param("sk-0123456789abcdefghij, short", "…ghij, (set)", id="several keys"),
        pytest.param("mongodb://u:p%40x@h:1/d", "mongodb://•••@h:1/d", id="address"),
        pytest.param("mongodb://h/?password=x", "mongodb://h/?•••", id="secret in the query"),
        pytest.param("mongodb://u:p@s@h", "mongodb://•••@h", id="unescaped sign in password"),
    ],
)
def test_secrets_are_masked(secret: str, shown: str) -> None:
    assert masked(secret) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("http://127.0.0.1:9380", "http://127.0.0.1:9380", id="nothing to hide"),
        pytest.param("http://u:p@h/x", "http://•••@h/x", id="password"),
        pytest.param("qwen-plus", "qwen-plus", id="no address"),
    ],
)
def test_addresses_lose_their_password(value: str, shown: str) -> None:
    assert without_password(value) == shown


def test_every_setting_is_listed_with_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("PASSAGES=7\nDASHSCOPE_API_KEY=sk-hidden-hidden-hidden\n")
    (tmp_path / ".env.local").write_text("LANGSMITH_PROJECT=mine\n")
    monkeypatch.setenv("LLM_MODEL", "qwen-plus")
    before = dict(os.environ)
    try:
        values = {each.variable: each for each in values_of(Settings.load(tmp_path))}
    finally:
        os.environ.clear()
        os.environ.update(before)

    assert values.keys() > {name.upper() for name in Settings.model_fields}
    assert (values["PASSAGES"].value, values["PASSAGES"].source) == (
        "7",
        str(tmp_path / ".env"),
    )
    assert values["HEAD_START"].value == "true"
    assert values["SESSION_TTL_DAYS"].value == "30"
    assert values["LLM_MODEL"].source == "the environment"
    assert values["LANGSMITH_PROJECT"].source == str(tmp_path / ".env.local")
    assert values["HISTORY_TURNS"].source == "default"
    assert "hidden-hidden" not in str(values)


def test_no_secret_is_shown() -> None:
    fields = [name for name, field in Settings.model_fields.items() if "Secret" in str(field)]
    assert fields
    for field in fields:
        address = "mongodb://u:hidden-hidden@h" if field == "mongodb_uri" else None
        secret = SecretStr(address or "sk-hidden-hidden-hidden")
        settings = Settings.model_validate({field: secret})
        assert "hidden-hidden" not in str(values_of(settings))
