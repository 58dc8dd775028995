"""The sources of an answer as Markdown at its foot, and an answer without them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_RULE = "\n\n---\n"
# A title may hold anything, so what would be Markdown in it is escaped.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~])")
_FOOT = re.compile(r"\n\n---\n(?:\*\*\[\d+\]\*\* [^\n]*(?:  \n|$))+\s*$")


def sources(citations: Sequence[Mapping[str, Any]]) -> str:
    """Return the foot that lists the sources, or "" if there are none."""
    if not citations:
        return ""
    lines = (f"**[{each['number']}]** {_described(each)}" for each in citations)
    return _RULE + "  \n".join(lines)


def without_sources(answer: str) -> str:
    """Return an answer without the foot that `sources` made."""
    return _FOOT.sub("", answer)


def _described(citation: Mapping[str, Any]) -> str:
    where = (citation.get("document"), citation.get("location"), citation.get("assistant"))
    return " · ".join(
        _MARKUP.sub(r"\\\1", " ".join(str(each).split())) for each in where if each
    )
