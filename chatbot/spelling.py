"""Finds variables that are almost, but not quite, settings."""

from collections.abc import Collection, Mapping, Sequence
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
_OTHERS = ("OPENAI_API_TYPE",)  # read by libraries, not by the settings


def misspelled(places: Sequence[Collection[str]], known: Collection[str]) -> Mapping[str, str]:
    """Return which of the given names nobody reads, each with the name that is probably meant.

    `places` are where names are given: one goes before the next, the last one holds defaults.
    A name is only suspected while the one that it resembles is not given where it counts as
    much or more. Defaults do not count: they are given for every name.
    """
    known = {*known, *_OTHERS}
    plain = {_plain(name): name for name in known}
    beginnings = {name[:2] for name in known}
    found: dict[str, str] = {}
    heeded: set[str] = set()
    for number, place in enumerate(places, 1):
        if number < len(places):
            heeded |= set(place)
        for name in place:
            if name in known or name in found or name[:2] not in beginnings:
                continue
            meant = _ELSEWHERE.get(name) or plain.get(_nearest(name, plain))
            if meant is not None and meant not in heeded:
                found[name] = meant
    return found


def _nearest(name: str, plain: Collection[str]) -> str:
    if near := get_close_matches(_plain(name), plain, n=1, cutoff=SIMILARITY):
        return near[0]
    longer = [each for each in plain if "_" in name and each.startswith(_plain(name))]
    return longer[0] if len(longer) == 1 else ""


def _plain(name: str) -> str:
    return name.replace("_", "")
