"""Mends the text of pages: lines that were broken to fit, and lines that stand on each page."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from chatbot.text import HAN

_FULL = 0.6  # the share of the longest line that a line which was broken to fit has at least
_WIDE = 30  # the width from which a line can have been broken to fit
_RUNNING = 0.5  # the share of the pages that a running head stands on at least
_FEW_PAGES = 3
_HAN = re.compile(f"[{HAN}，。、；：！？（）《》“”]")
_ITEM = re.compile(
    r"^\s*(?:[-*+•·]|[(（]?(?:\d{1,3}|[一二三四五六七八九十]+)[.)、）])\s*\S|^\s*\|"
)
_SENTENCE_END = re.compile(r"[。！？.!?:：;；]$")


def mended(pages: Sequence[str]) -> list[str]:
    """Return the pages without running heads, and the lines of each paragraph joined."""
    found = [[line.strip() for line in re.split(r"\r?\n|\f", page)] for page in pages]
    running = _running(found)
    return [
        "\n".join(_joined([line for line in lines if _shape(line) not in running]))
        for lines in found
    ]


def _running(pages: Sequence[Sequence[str]]) -> set[str]:
    """Return what the first and last lines of most pages have in common."""
    if len(pages) < _FEW_PAGES:
        return set()
    counts: Counter[str] = Counter()
    for lines in pages:
        said = [line for line in lines if line]
        counts.update({_shape(line) for line in (*said[:2], *said[-2:])})
    return {shape for shape, count in counts.items() if count > _RUNNING * len(pages)}


def _shape(line: str) -> str:
    """Return the line without what differs between pages, or "" for an empty one."""
    return re.sub(r"\d+", "0", line)


def _joined(lines: Sequence[str]) -> Iterator[str]:
    widest = max((_width(line) for line in lines), default=0)
    full = max(_FULL * widest, _WIDE)
    whole = last = ""
    for line in lines:
        if whole and line and _goes_on(last, line, full):
            whole = _glued(whole, line)
        else:
            if whole:
                yield whole
            if not line:
                yield ""
            whole = line
        last = line
    if whole:
        yield whole


def _goes_on(line: str, following: str, full: float) -> bool:
    if _width(line) < full or _ITEM.match(following) or line.startswith("|"):
        return False
    return not (_SENTENCE_END.search(line) and _width(following) < full)


def _glued(line: str, following: str) -> str:
    if line.endswith("-") and line[-2:-1].isalpha() and following[0].islower():
        return line[:-1] + following
    if _HAN.match(line[-1]) or _HAN.match(following):
        return line + following
    return f"{line} {following}"


def _width(line: str) -> int:
    return len(line) + len(_HAN.findall(line))
