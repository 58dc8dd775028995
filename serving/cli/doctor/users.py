"""Examines who may sign in: API keys, signed tokens, operators."""

import asyncio
import os
from datetime import UTC, datetime

from chatbot.errors import ConfigurationError
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note

PART = "users"
CREATE = "chatbot keys create USER"


async def examine_users(settings: Settings, note: Note) -> None:
    """Read the keys and the public keys, as a server does."""
    tokens = await asyncio.to_thread(_read_tokens, settings, note)
    names = await asyncio.to_thread(_read_keys, settings, note)
    if names is None and not tokens:
        note(Finding(PART, "off", "Nobody has to sign in, so only this machine is served."))
        if settings.operator_names:
            advice = "Set AUTH_KEYS_DIR or JWT_SECRET, so that they can sign in."
            note(Finding(PART, "warn", "OPERATORS is set, but nobody signs in.", advice))
        return
    if not names and not tokens:
        note(Finding(PART, "warn", "There is no key that works: nobody can sign in.", CREATE))
    without = sorted(settings.operator_names - (names or frozenset())) if not tokens else []
    for name in without:
        detail = f"The operator {name} has no key that works."
        note(Finding(PART, "warn", detail, f"chatbot keys create {name}"))
    if settings.operator_names and not without:
        operators = ", ".join(sorted(settings.operator_names))
        note(Finding(PART, "ok", f"Operators: {operators}."))


def _read_tokens(settings: Settings, note: Note) -> bool:
    """Tell by what tokens are checked, and return whether any are taken."""
    if settings.jwt_secret is None and settings.jwt_jwks_file is None:
        return False
    from serving.auth.tokens import checked_secret, read_public_keys  # noqa: PLC0415 - heavy

    if settings.jwt_secret is not None:
        checked_secret(settings.jwt_secret.get_secret_value())
        note(Finding(PART, "ok", "Tokens are checked by JWT_SECRET."))
    if settings.jwt_jwks_file is not None:
        file = settings.path(settings.jwt_jwks_file)
        if count := len(read_public_keys(file)):
            note(Finding(PART, "ok", f"Public keys in {file} that check tokens: {count}."))
        else:
            advice = "Put the issuer's keys into it, of a kind such as RS256."
            note(Finding(PART, "fail", f"No public key in {file} can check tokens.", advice))
    return True


def _read_keys(settings: Settings, note: Note) -> frozenset[str] | None:
    """Tell how many keys there are, and return whose work; nothing where none are used."""
    from serving.auth.keys import read_keys  # noqa: PLC0415 - rarely needed

    if settings.auth_keys_dir is None:
        return None
    folder = settings.path(settings.auth_keys_dir)
    if folder.exists() and not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
        message = f"AUTH_KEYS_DIR: {folder} is not a folder that can be read."
        raise ConfigurationError(message)
    keys = read_keys(folder).by_id.values()
    now = datetime.now(UTC)
    working = [key for key in keys if not key.expired(now)]
    names = frozenset(key.user for key in working)
    expired = f", {len(keys) - len(working)} expired" if len(keys) > len(working) else ""
    detail = f"API keys in {folder}: {len(working)}, of {len(names)} users{expired}."
    note(Finding(PART, "ok", detail))
    return names
