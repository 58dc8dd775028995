"""The one place that says who is asking."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie

import jwt

from chatbot.errors import ConfigurationError
from chatbot.settings import Settings
from serving.auth.identity import NOBODY, Identity, SignInError
from serving.auth.keys import PREFIX, ApiKeys, read_keys
from serving.auth.tokens import TokenRules, Tokens, checked_secret, read_public_keys

logger = logging.getLogger(__name__)

COOKIE = "chatbot_token"
REFRESH_SECONDS = 5.0
NEW_KEY_SECONDS = 0.5
LONGEST_PROOF = 8192


class Authenticator:
    """Knows users by API keys and signed tokens, as far as the settings name them.

    Both files are read again every few seconds, so a key that is revoked stops working without
    a restart.
    """

    def __init__(self, settings: Settings) -> None:
        self._keys_folder = settings.auth_keys_dir and settings.path(settings.auth_keys_dir)
        self._jwks_file = settings.jwt_jwks_file and settings.path(settings.jwt_jwks_file)
        self._operators = settings.operator_names
        self._tokens: Tokens | None = None
        if settings.jwt_secret is not None or self._jwks_file is not None:
            given = settings.jwt_secret
            secret = None if given is None else checked_secret(given.get_secret_value())
            rules = TokenRules(
                issuer=settings.jwt_issuer,
                audience=settings.jwt_audience,
                user_claim=settings.jwt_user_claim,
                assistants_claim=settings.jwt_assistants_claim,
            )
            self._tokens = Tokens(rules=rules, secret=secret)
        self._keys = ApiKeys({})
        self._public_keys: Mapping[str, jwt.PyJWK] = {}
        self._read_at = float("-inf")

    @property
    def required(self) -> bool:
        """Whether users have to sign in."""
        return self._keys_folder is not None or self._tokens is not None

    async def refresh(self) -> None:
        """Read the files.

        Raises:
            ConfigurationError: One of them cannot be used.
        """
        self._read_at = time.monotonic()
        if self._keys_folder is not None:
            self._keys = await asyncio.to_thread(read_keys, self._keys_folder)
        if self._jwks_file is not None and self._tokens is not None:
            keys = await asyncio.to_thread(read_public_keys, self._jwks_file)
            self._tokens = replace(self._tokens, public_keys=keys)

    async def authenticate(
        self, headers: Mapping[str, str], *, cookies: bool = False
    ) -> Identity:
        """Return who sent these headers, whose names are in small letters.

        The proof is a bearer token or `x-api-key`, and with `cookies` the page's cookie.

        Raises:
            SignInError: Users have to sign in, and nobody known here did.
        """
        if not self.required:
            return NOBODY
        proof = proof_in(headers, cookies=cookies)
        if not proof:
            message = "Sign in first: send an API key or a token as bearer."
            raise SignInError(message)
        return await self.identity(proof)

    async def identity(self, proof: str) -> Identity:
        """Return whose key or token this is.

        Raises:
            SignInError: It is nobody's.
        """
        await self._keep_fresh(REFRESH_SECONDS)
        key = self._keys.find(proof, datetime.now(UTC))
        if key is None and proof.startswith(f"{PREFIX}_"):
            await self._keep_fresh(NEW_KEY_SECONDS)  # it may just have been made
            key = self._keys.find(proof, datetime.now(UTC))
        if key is not None:
            names = None if key.assistants is None else frozenset(key.assistants)
            found = Identity(user_id=key.user, assistants=names)
        elif self._tokens is None or proof.startswith(f"{PREFIX}_"):
            message = "This key is not known here, or has expired."
            raise SignInError(message)
        else:
            found = self._tokens.identity(proof)
        return replace(found, operator=found.user_id in self._operators)

    async def _keep_fresh(self, seconds: float) -> None:
        """Read the files again if they were read longer ago than this."""
        if time.monotonic() - self._read_at <= seconds:
            return
        try:
            await self.refresh()
        except ConfigurationError as error:
            logger.warning("%s The keys read before stay valid.", error.message)


def proof_in(headers: Mapping[str, str], *, cookies: bool) -> str:
    """Return the key or token that came with a request, or "" if there is none."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer.strip():
        return bearer.strip()[:LONGEST_PROOF]
    if key := headers.get("x-api-key", "").strip():
        return key[:LONGEST_PROOF]
    if cookies:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value[:LONGEST_PROOF] if found else ""
    return ""
