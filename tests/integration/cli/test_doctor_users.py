from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from serving.auth.keys import create_key
from tests.integration.cli.examined import examined, states, words

NOT_RSA = '{"keys": [{"kty": "oct", "kid": "1", "k": "c2VjcmV0", "alg": "HS256"}]}'


@pytest.mark.parametrize(
    ("users", "fields", "expected", "said"),
    [
        pytest.param([], {}, {"off"}, "Nobody has to sign in", id="no users"),
        pytest.param(
            [], {"operators": "ann"}, {"off", "warn"}, "nobody signs in", id="operators alone"
        ),
        pytest.param(
            ["ann", "ann", "bob"],
            {"auth_keys_dir": "keys", "operators": "ann"},
            {"ok"},
            "3, of 2 users.",
            id="keys",
        ),
        pytest.param(
            ["ann"],
            {"auth_keys_dir": "keys", "operators": "ann, eve"},
            {"ok", "warn"},
            "The operator eve has no key that works. chatbot keys create eve",
            id="operator without a key",
        ),
        pytest.param(
            [], {"auth_keys_dir": "keys"}, {"ok", "warn"}, "nobody can sign in", id="no key"
        ),
        pytest.param([], {"auth_keys_dir": "file"}, {"fail"}, "not a folder", id="a file"),
        pytest.param(
            [], {"auth_keys_dir": "broken"}, {"fail"}, "is not a key", id="no such key"
        ),
        pytest.param(
            [],
            {"jwt_secret": SecretStr("s" * 32), "operators": "ann"},
            {"ok"},
            "Operators: ann.",
            id="tokens",
        ),
        pytest.param(
            [], {"jwt_secret": SecretStr("short")}, {"fail"}, "at least 32 bytes", id="short"
        ),
        pytest.param(
            [], {"jwt_jwks_file": "none.json"}, {"fail"}, "cannot be read", id="no file"
        ),
        pytest.param(
            [], {"jwt_jwks_file": "jwks.json"}, {"fail"}, "No public key", id="no public key"
        ),
    ],
)
async def test_users(
    tmp_path: Path, users: list[str], fields: Mapping[str, Any], expected: set[str], said: str
) -> None:
    for user in users:
        create_key(tmp_path / "keys", user)
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.json").write_text("{}")
    (tmp_path / "jwks.json").write_text(NOT_RSA)
    named = {
        name: tmp_path / value if name.endswith(("_dir", "_file")) else value
        for name, value in fields.items()
    }
    findings = await examined(tmp_path, **named)

    assert states(findings, "users") == expected
    assert said in words(findings, "users")
    failing = [each for each in findings if each.part == "users" and each.state == "fail"]
    assert all(each.advice for each in failing)


async def test_expired_keys_are_counted_apart(tmp_path: Path) -> None:
    soon = datetime.now(UTC) + timedelta(milliseconds=1)
    create_key(tmp_path / "keys", "ann", expires=soon)
    findings = await examined(tmp_path, auth_keys_dir=tmp_path / "keys")

    assert "0, of 0 users, 1 expired." in words(findings, "users")
    assert states(findings, "users") == {"ok", "warn"}
