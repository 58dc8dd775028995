"""LangSmith's variables, as its libraries name them and as they understand them."""

import os
from collections.abc import Iterable, MutableMapping

from pydantic import AliasChoices, BaseModel

PREFIXES = ("LANGSMITH", "LANGCHAIN")  # the first goes before the second
_OURS = "langsmith_"  # fields of the settings
# What is called by two names, of which the first goes before the second.
_CALLED = dict.fromkeys(("TRACING", "TRACING_V2"), ("TRACING_V2", "TRACING"))
# What the libraries read beside those that are settings of ours: what people may mean to set,
# and what must not be taken for something else.
_ELSE = (
    *("API_KEY", "ENDPOINT", "METADATA", "PROJECT", "RUNS_ENDPOINTS", "TAGS"),
    *("TEST_TRACKING", "TRACING_MODE", "USE_DAEMON", "WORKSPACE_ID"),
)


def names_of(field: str) -> tuple[str, ...]:
    """Return the variables that set this field of the settings, the first before the others."""
    plain = field.upper().partition("_")[2]
    called = _CALLED.get(plain, (plain,))
    return tuple(f"{prefix}_{name}" for name in called for prefix in PREFIXES)


def aliases(field: str) -> str | AliasChoices:
    """Return by which names a field of the settings is given."""
    if not field.startswith(_OURS):
        return field
    return AliasChoices(*(name.lower() for name in names_of(field)))


def as_given(variable: str) -> str:
    """Return which of the variables that mean the same as this one is set, if one is."""
    if not variable.lower().startswith(_OURS):
        return variable
    return next((name for name in names_of(variable) if os.environ.get(name)), variable)


def known_names(fields: Iterable[str]) -> set[str]:
    """Return all that LangSmith's libraries read, the variables of the fields included."""
    ours = {name for field in fields if field.startswith(_OURS) for name in names_of(field)}
    return ours | {f"{prefix}_{name}" for prefix in PREFIXES for name in _ELSE}


def hand_over(settings: BaseModel, sources: MutableMapping[str, str]) -> None:
    """Write LangSmith's switches as its libraries read them: `true` alone means yes to them."""
    for field in type(settings).model_fields:
        value = getattr(settings, field)
        if not field.startswith(_OURS) or not isinstance(value, bool):
            continue
        own, first = field.upper(), as_given(field.upper())
        for name in names_of(field):
            if os.environ.get(name) or (name == own and os.environ.get(first)):
                os.environ[name] = str(value).lower()
                if name == own:
                    sources[own] = sources.get(first, "the environment")
