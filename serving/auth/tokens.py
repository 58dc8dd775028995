"""Signed tokens (JWT) that somebody else issued: checked here, never made."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt

from chatbot.domain import checked_id
from chatbot.errors import ConfigurationError, InputError
from serving.auth.identity import Identity, SignInError

SECRET_BYTES = 32  # as long as the digest of HS256, RFC 7518 section 3.2
LEEWAY_SECONDS = 30  # clocks differ
SIGNED_BY_KEY = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")

Key = Any  # what PyJWT takes: bytes, or a key of the cryptography package


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRules:
    """What a token must say. The user is in `user_claim`, the assistants, if any, in theirs."""

    issuer: str | None = None
    audience: str | None = None
    user_claim: str = "sub"
    assistants_claim: str = "assistants"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """Checks tokens against a shared secret (HS256), or public keys by their `kid`."""

    rules: TokenRules
    secret: bytes | None = None
    public_keys: Mapping[str, jwt.PyJWK] | None = None

    def identity(self, token: str) -> Identity:
        """Return who the token says it is.

        Raises:
            SignInError: The token is not valid; the message says why.
        """
        key, algorithms = self._key(token)
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=algorithms,
                issuer=self.rules.issuer,
                audience=self.rules.audience,
                leeway=LEEWAY_SECONDS,
                options={
                    "require": ["exp", self.rules.user_claim],
                    "verify_aud": self.rules.audience is not None,
                },
            )
        except jwt.ExpiredSignatureError:
            message = "The token has expired: sign in again."
            raise SignInError(message) from None
        except jwt.InvalidTokenError as error:
            message = f"The token is not valid: {_reason(error)}."
            raise SignInError(message) from None
        return _identity(claims, self.rules)

    def _key(self, token: str) -> tuple[Key, list[str]]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            message = "This is neither a key nor a token that is known here."
            raise SignInError(message) from None
        if header.get("alg") == "HS256" and self.secret is not None:
            return self.secret, ["HS256"]
        known = self.public_keys or {}
        found = known.get(str(header.get("kid"))) or (
            next(iter(known.values())) if len(known) == 1 and "kid" not in header else None
        )
        # The algorithm is the key's own, never the one that the token asks for.
        if found is None or found.algorithm_name not in SIGNED_BY_KEY:
            message = "The token is signed with a key that is not known here."
            raise SignInError(message)
        return found.key, [found.algorithm_name]


def read_public_keys(path: Path) -> Mapping[str, jwt.PyJWK]:
    """Return the public keys of a JWKS file by their ids.

    Raises:
        ConfigurationError: The file cannot be used.
    """
    try:
        found = jwt.PyJWKSet.from_json(path.read_text(encoding="utf-8")).keys
    except (OSError, UnicodeDecodeError) as error:
        message = f"JWT_JWKS_FILE: {path} cannot be read: {error}."
        raise ConfigurationError(message) from None
    except (jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError):
        message = f"JWT_JWKS_FILE: {path} is not a JWK set that can be used."
        raise ConfigurationError(message) from None
    return {str(key.key_id): key for key in found if key.algorithm_name in SIGNED_BY_KEY}


def checked_secret(secret: str) -> bytes:
    """Return the shared secret.

    Raises:
        ConfigurationError: It is too short to be safe.
    """
    encoded = secret.encode()
    if len(encoded) < SECRET_BYTES:
        message = f"JWT_SECRET: must have at least {SECRET_BYTES} bytes."
        raise ConfigurationError(message)
    return encoded


def _identity(claims: Mapping[str, Any], rules: TokenRules) -> Identity:
    named = claims.get(rules.assistants_claim)
    names = named.split(",") if isinstance(named, str) else named
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name, str) for name in names)
    ):
        message = f"The token's {rules.assistants_claim} must be a list of names."
        raise SignInError(message)
    try:
        user_id = checked_id(claims[rules.user_claim], "user id", slash=True)
    except InputError as error:
        message = f"The token's {rules.user_claim} is no user id: {error.message}"
        raise SignInError(message) from None
    return Identity(
        user_id=user_id,
        assistants=None if names is None else frozenset(name.strip() for name in names),
    )


def _reason(error: jwt.InvalidTokenError) -> str:
    """Say what is wrong without repeating what the token holds."""
    kinds: tuple[tuple[type[jwt.InvalidTokenError], str], ...] = (
        (jwt.InvalidSignatureError, "its signature is wrong"),
        (jwt.InvalidAudienceError, "it is meant for another audience"),
        (jwt.InvalidIssuerError, "it has another issuer"),
        (jwt.ImmatureSignatureError, "it is not valid yet"),
        (jwt.MissingRequiredClaimError, "it lacks a claim that is required"),
    )
    return next((said for kind, said in kinds if isinstance(error, kind)), "it is malformed")
