"""Mends the text of pages: lines that were broken to fit, and lines that stand on each page."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from chatbot.text import HAN

_FULL = 0.6  # the share of the longest line that a line which was broken to fit has at least
_WIDE = 30  # the width from which a line can have been broken to fit
_ENDS = 2  # lines at the top and at the bottom of a page that may be a running head
_FEW_PAGES = 3
_LONGEST_NUMBER = 5
_HAN = re.compile(f"[{HAN}，。、；：！？（）《》“”]")
_ITEM = re.compile(
    r"^\s*(?:[-*+•·]|[(（]?(?:\d{1,3}|[一二三四五六七八九十]+)[.)、）])\s*\S|^\s*\|"
)
_NUMBER = re.compile(r"\d+")
_NUMBERED = re.compile(  # a page number with a word that says so
    r"\W*(?:(?:page|p\.|pg\.|seite)\s*\d+(?:\s*(?:of|/|von)\s*\d+)?|\d+\s*of\s*\d+"
    r"|第\s*\d+\s*[页頁](?:\W*共\s*\d+\s*[页頁])?|共\s*\d+\s*[页頁]\W*第\s*\d+\s*[页頁])\W*",
    re.IGNORECASE,
)
_BARE = re.compile(r"[\s\-–—·]*(\d+)(?:\s*[/／]\s*(\d+))?[\s\-–—·]*")
_SENTENCE_END = re.compile(r"[。！？.!?:：;；]$")


def mended(pages: Sequence[str]) -> list[str]:
    """Return the pages without running heads and page numbers, lines of paragraphs joined."""
    found = [[line.strip() for line in re.split(r"\r?\n|\f", page)] for page in pages]
    running = _running(found)
    return [
        "\n".join(_joined(list(_proper(lines, number, len(found), running))))
        for number, lines in enumerate(found, 1)
    ]


def _proper(lines: Sequence[str], number: int, total: int, running: set[str]) -> Iterator[str]:
    """Give the lines of a page that are no running head of the document and no page number."""
    said = [at for at, line in enumerate(lines) if line]
    ends = {*said[:_ENDS], *said[-_ENDS:]}
    for at, line in enumerate(lines):
        numbered = at in ends and _is_page_number(line, number, total)
        if not numbered and running.isdisjoint({*_forms(line, number), _shape(line)}):
            yield line


def _running(pages: Sequence[Sequence[str]]) -> set[str]:
    """Return the forms in which the first and last lines of the pages are the same.

    A head may stand on every other page. Where other numbers differ than the page's, it must
    stand on most of them.
    """
    counts: Counter[str] = Counter()
    shapes: Counter[str] = Counter()
    for number, lines in enumerate(pages, 1):
        said = [line for line in lines if line]
        ends = (*said[:_ENDS], *said[-_ENDS:])
        counts.update({form for line in ends for form in _forms(line, number)})
        shapes.update({_shape(line) for line in ends})
    found = {each for each, count in counts.items() if count >= max(2, len(pages) // 2)}
    if len(pages) >= _FEW_PAGES:
        found |= {shape for shape, count in shapes.items() if 2 * count > len(pages)}
    return found - {""}


def _forms(line: str, number: int) -> Iterator[str]:
    """Give the line, and the line with each of its numbers as if it counted the pages.

    The head of a table that goes on is no running head.
    """
    if not line or line.startswith("|"):
        return
    yield f"={line}"
    for match in _NUMBER.finditer(line):
        if len(match.group()) <= _LONGEST_NUMBER:
            counted = f"{int(match.group()) - number:+}"
            yield f"={line[: match.start()]}{counted}{line[match.end() :]}"


def _shape(line: str) -> str:
    """Return the line without its numbers, or "" if it can be no running head."""
    return "" if line.startswith("|") else _NUMBER.sub("0", line)


def _is_page_number(line: str, number: int, total: int) -> bool:
    if _NUMBERED.fullmatch(line):
        return True
    bare = _BARE.fullmatch(line)
    return bare is not None and (
        bare.group(1).lstrip("0") == str(number) or bare.group(2) == str(total)
    )


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
