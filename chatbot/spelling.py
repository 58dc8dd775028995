"""Finds variables that are almost, but not quite, settings."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

SIMILARITY = 0.8
# What the same thing is called elsewhere.
_ELSEWHERE = {
    "DASHSCOPE_MODEL": "LLM_MODEL",
    "LLM_API_KEY": "OPENAI_API_KEY",
    "LLM_BASE_URL": "OPENAI_BASE_URL",
    "MONGODB_DATABASE": "MONGODB_DB",
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "OPENAI_MODEL": "LLM_MODEL",
}
# Read by libraries, not by the settings.
_OTHERS = (
    "LANGSMITH_API_KEY",
    "LANGSMITH_ENDPOINT",
    "LANGSMITH_PROJECT",
    "LANGSMITH_TEST_TRACKING",
    "LANGSMITH_TRACING",
    "LANGSMITH_TRACING_V2",
    "OPENAI_API_TYPE",
)


def misspelled(given: Collection[str], settings: Collection[str]) -> Mapping[str, str]:
    """Return which of the given names nobody reads, each with the name that is probably meant.

    A name is only suspected while the one that it resembles is not given as well.
    """
    known = {*settings, *_OTHERS}
    plain = {_plain(name): name for name in known}
    beginnings = {name[:2] for name in known}
    found: dict[str, str] = {}
    for name in given:
        if name in known or name[:2] not in beginnings:
            continue
        meant = _ELSEWHERE.get(name) or plain.get(_nearest(name, plain))
        if meant is not None and meant not in given:
            found[name] = meant
    return found


def _nearest(name: str, plain: Collection[str]) -> str:
    if near := get_close_matches(_plain(name), plain, n=1, cutoff=SIMILARITY):
        return near[0]
    longer = [each for each in plain if "_" in name and each.startswith(_plain(name))]
    return longer[0] if len(longer) == 1 else ""


def _plain(name: str) -> str:
    return name.replace("_", "")
