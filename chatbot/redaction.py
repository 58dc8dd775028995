"""Takes secrets out of what is logged and traced: the one place that knows them all."""

import base64
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from chatbot.settings import Settings
from chatbot.tools.mcp import VARIABLE

REMOVED = "[secret]"
SHORTEST_SECRET = 8  # shorter values stand in ordinary words too

SECRET_NAME = re.compile(r"(?:_KEY|_TOKEN|_SECRET|_PASSWORD)$", re.IGNORECASE)
_BEARER = re.compile(r"(?P<before>\bBearer\s+)[^\s\"',;]{8,}", re.IGNORECASE)
_OPTION = re.compile(
    r"(?:key|token|secret|password|signature|\bsig)[=:](?P<value>[^&,#]+)", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?P<before>://[^\s/:@\"']*:)[^\s/@\"']+(?=@)")
_ARGUMENT = re.compile(r"-\S*(?:key|token|secret|password)[= ](?P<value>\S+)", re.IGNORECASE)


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


def redaction(settings: Settings) -> Redaction:
    """Return what removes the secrets of the settings, of the environment and of MODELS_FILE.

    It reads that file: not in an event loop.
    """
    secrets = {
        value for name, value in os.environ.items() if value and SECRET_NAME.search(name)
    }
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            secrets |= _parts(value.get_secret_value())
        elif isinstance(value, str):
            secrets |= secrets_in(value)
    if settings.models_file is not None:
        secrets.update(_of_models_file(settings.path(settings.models_file)))
    return Redaction(secrets)


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


def _parts(secret: str) -> set[str]:
    """Return the secret, each key of a list of keys, and what signs in within an address."""
    return {secret, *(key.strip() for key in secret.split(",")), *secrets_in(secret)}


def _of_models_file(path: Path) -> Iterator[str]:
    """Yield what signs in at the endpoints and MCP servers; of no use is a file that is wrong.

    Whoever uses the file says what is wrong with it.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return
    endpoints, servers = tables.get("endpoint"), tables.get("mcp")
    for endpoint in endpoints if isinstance(endpoints, list) else ():
        yield from _of_endpoint(_table(endpoint))
    for server in _table(servers).values():
        yield from _of_tools(_table(server))


def _of_endpoint(table: Mapping[str, Any]) -> Iterator[str]:
    yield from _parts(str(table.get("api_key", "")))
    yield from _parts(os.environ.get(str(table.get("api_key_variable", "")), ""))
    yield from secrets_in(str(table.get("base_url", "")))


def _of_tools(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield what headers, variables, arguments and the address hold, which may sign in."""
    for name in ("headers", "env"):
        for given in _table(table.get(name)).values():
            value = VARIABLE.sub(lambda found: os.environ.get(found[1], ""), str(given))
            yield from (value, *value.split()[-1:])
    yield from secrets_in(str(table.get("url", "")))
    arguments = table.get("args")
    if isinstance(arguments, list):
        for found in _ARGUMENT.finditer(" ".join(map(str, arguments))):
            yield found["value"]


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
