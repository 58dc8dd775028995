"""Signed tokens: those that say who somebody is, and all that do not."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from chatbot.errors import ConfigurationError
from serving.auth.identity import SignInError
from serving.auth.tokens import TokenRules, Tokens, checked_secret, read_public_keys

SECRET = b"a secret that is long enough for HS256"
RULES = TokenRules(issuer="https://login.example", audience="chatbot")
PRIVATE_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def claims(**changed: Any) -> dict[str, Any]:
    standard = {
        "sub": "ann",
        "iss": "https://login.example",
        "aud": "chatbot",
        "exp": time.time() + 86_400,  # made when the tests are collected, used much later
    }
    return {name: value for name, value in (standard | changed).items() if value is not None}


def by_secret(**changed: Any) -> str:
    return jwt.encode(claims(**changed), SECRET, algorithm="HS256")


def unsigned() -> str:
    header, payload = ({"alg": "none", "typ": "JWT"}, claims())
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in (header, payload))
    return b".".join(part.rstrip(b"=") for part in parts).decode() + "."


def key_file(folder: Path, *, kid: str = "k1") -> Path:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(PRIVATE_KEY.public_key()))
    path = folder / "jwks.json"
    path.write_text(json.dumps({"keys": [{**public, "kid": kid, "alg": "RS256"}]}))
    return path


@pytest.mark.parametrize(
    ("changed", "assistants"),
    [
        pytest.param({}, None, id="all assistants"),
        pytest.param({"assistants": ["HR", "IT"]}, {"HR", "IT"}, id="two assistants"),
        pytest.param({"assistants": "HR, IT"}, {"HR", "IT"}, id="two in one text"),
        pytest.param({"assistants": []}, set(), id="no assistant"),
        pytest.param({"aud": ["other", "chatbot"]}, None, id="several audiences"),
    ],
)
def test_token_says_who_it_is(changed: dict[str, Any], assistants: set[str] | None) -> None:
    identity = Tokens(rules=RULES, secret=SECRET).identity(by_secret(**changed))
    assert identity.user_id == "ann"
    assert identity.assistants == assistants
    assert not identity.operator


@pytest.mark.parametrize(
    ("token", "told"),
    [
        pytest.param(by_secret(exp=time.time() - 60), "expired", id="expired"),
        pytest.param(by_secret(exp=None), "lacks a claim", id="for ever"),
        pytest.param(by_secret(nbf=time.time() + 86_400), "not valid yet", id="not yet"),
        pytest.param(by_secret(iss="https://evil"), "issuer", id="another issuer"),
        pytest.param(by_secret(aud="mail"), "audience", id="another audience"),
        pytest.param(by_secret(sub=None), "lacks a claim", id="nobody"),
        pytest.param(by_secret(sub="a b"), "no user id", id="a user that is no id"),
        pytest.param(by_secret(sub={"$ne": ""}), "malformed", id="an object as user"),
        pytest.param(by_secret(assistants=7), "list of names", id="assistants are a number"),
        pytest.param(
            jwt.encode(claims(), b"x" * 40, algorithm="HS256"), "signature", id="forged"
        ),
        pytest.param(unsigned(), "not known", id="unsigned"),
        pytest.param("nonsense", "neither", id="not a token"),
        pytest.param("", "neither", id="nothing"),
        pytest.param("a.b.c", "neither", id="three parts of nothing"),
        pytest.param(
            jwt.encode(claims(), PRIVATE_KEY, algorithm="RS256"), "not known", id="another way"
        ),
    ],
)
def test_token_that_does_not_hold_is_refused(token: str, told: str) -> None:
    with pytest.raises(SignInError, match=told):
        Tokens(rules=RULES, secret=SECRET).identity(token)


def test_token_signed_by_a_public_key(tmp_path: Path) -> None:
    tokens = Tokens(rules=RULES, public_keys=read_public_keys(key_file(tmp_path)))
    token = jwt.encode(claims(), PRIVATE_KEY, algorithm="RS256", headers={"kid": "k1"})
    other = jwt.encode(claims(), PRIVATE_KEY, algorithm="RS256", headers={"kid": "k2"})

    assert tokens.identity(token).user_id == "ann"
    assert tokens.identity(jwt.encode(claims(), PRIVATE_KEY, "RS256")).user_id == "ann"
    with pytest.raises(SignInError, match="not known"):
        tokens.identity(other)


def test_public_key_is_no_shared_secret(tmp_path: Path) -> None:
    """Whoever knows the public key must not sign with it as if it were the secret."""
    tokens = Tokens(rules=RULES, public_keys=read_public_keys(key_file(tmp_path)))
    modulus = PRIVATE_KEY.public_key().public_numbers().n.to_bytes(256, "big")
    forged = jwt.encode(claims(), modulus, algorithm="HS256", headers={"kid": "k1"})
    with pytest.raises(SignInError, match="not valid"):
        tokens.identity(forged)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("no json", "not a JWK set", id="not JSON"),
        pytest.param('{"keys": []}', "not a JWK set", id="without keys"),
        pytest.param("[]", "not a JWK set", id="a list"),
    ],
)
def test_file_that_has_no_keys_is_named(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "jwks.json").write_text(content)
    with pytest.raises(ConfigurationError, match=told):
        read_public_keys(tmp_path / "jwks.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_public_keys(tmp_path / "none.json")


def test_secret_is_long_enough() -> None:
    assert checked_secret(SECRET.decode()) == SECRET
    with pytest.raises(ConfigurationError, match="32 bytes"):
        checked_secret("short")
