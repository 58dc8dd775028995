"""The settings as people may see them: each with its source, no secret."""

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from chatbot.settings import Settings

SHOWN_CHARACTERS = 4
LONG_ENOUGH = 20  # so that what is shown of a key gives nothing away
LANGSMITH = ("LANGSMITH_API_KEY", "LANGSMITH_PROJECT", "LANGSMITH_ENDPOINT")


@dataclass(frozen=True, slots=True)
class Value:
    """A setting: its variable, its value with secrets masked, and where it was read."""

    variable: str
    value: str
    source: str

    def json(self) -> dict[str, str]:
        """Return it as plain JSON."""
        return asdict(self)


def values_of(settings: Settings) -> Sequence[Value]:
    """Return every setting."""
    found = []
    for field in type(settings).model_fields:
        value = getattr(settings, field)
        if isinstance(value, Path):
            shown = str(settings.path(value))
        elif isinstance(value, SecretStr):
            shown = masked(value.get_secret_value())
        else:
            shown = "" if value is None else without_password(_written(value))
        found.append(Value(field.upper(), shown, settings.source(field)))
    for variable in LANGSMITH:
        given = os.environ.get(variable, "")
        shown = masked(given) if variable.endswith("_KEY") else without_password(given)
        source = settings.source(variable.lower()) if given else "default"
        found.append(Value(variable, shown, source))
    return found


def _written(value: object) -> str:
    """Return a value as it stands in a file of settings."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def masked(secret: str) -> str:
    """Return what may be shown of a secret: enough to tell two of them apart, no more."""
    if "://" in secret:
        return without_password(secret)
    keys = [key.strip() for key in secret.split(",") if key.strip()]
    return ", ".join(
        f"…{key[-SHOWN_CHARACTERS:]}" if len(key) >= LONG_ENOUGH else "(set)" for key in keys
    )


def without_password(value: str) -> str:
    """Return an address without what signs in, also where it is part of the query."""
    if "://" not in value:
        return value
    value = re.sub(r"(?<=://).*@", "•••@", value)
    try:
        query = urlsplit(value).query
    except ValueError:
        return "(set)"
    return value.replace(f"?{query}", "?•••") if query else value
