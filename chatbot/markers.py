"""The forms in which models write citation markers."""

import re
from dataclasses import dataclass
from typing import Literal

BLANKS = " \t\u3000\u00a0"
OPENERS = "[［【(（#"
MARKER_LENGTH = 48
PLAIN_LARGEST = 99
LONGEST_RANGE = 10

_LABELS = [
    *(
        "ID",
        "citation",
        "cite",
        "document",
        "doc",
        "passage",
        "reference",
        "ref",
        "source",
        "^",
    ),
    *("来源", "引用", "文档", "资料", "参考", "段落"),
]
_BLANK = rf"[{BLANKS}]?"
_LABEL = "(?:" + "|".join(map(re.escape, _LABELS)) + ")"
_BEGUN_LABEL = (
    "(?:"
    + "|".join(
        re.escape(label[:length])
        for label in sorted(_LABELS, key=len, reverse=True)
        for length in range(len(label), 0, -1)
    )
    + ")"
)
_COLON = rf"{_BLANK}[:：#]?{_BLANK}"
_NUMBER = r"\d{1,3}"
_DASH = rf"{_BLANK}[-–—~～]{_BLANK}"
_COMMA = rf"{_BLANK}[,，、;；]{_BLANK}"
_RANGE = rf"{_NUMBER}(?:{_DASH}{_NUMBER})?"
_ITEM = rf"(?:{_LABEL}{_COLON})?{_RANGE}"
_ITEMS = rf"{_BLANK}{_ITEM}(?:{_COMMA}{_ITEM})*{_BLANK}"
_BEGUN_ITEM = rf"(?:{_BEGUN_LABEL}|{_LABEL}{_COLON}|(?:{_LABEL}{_COLON})?{_NUMBER}(?:{_DASH})?)"
_BEGUN_ITEMS = rf"{_BLANK}(?:{_ITEM}{_COMMA})*(?:{_ITEM}{_BLANK}|{_BEGUN_ITEM})?"
_ID = rf"{_BLANK}ID{_COLON}"

_COMPLETE = re.compile(
    rf"\[\[(?P<double>{_ITEMS})\]\]|\[(?P<square>{_ITEMS})\]"
    rf"|［(?P<full>{_ITEMS})］"
    rf"|【(?P<lenticular>{_ITEMS})(?:†[^】\n]{{0,30}})?】"
    rf"|\((?P<round>{_ID}{_ITEMS})\)|（(?P<wide>{_ID}{_ITEMS})）"
    r"|##(?P<hash>\d{1,3})\$\$",
    re.IGNORECASE,
)
_BEGUN = re.compile(
    rf"\[\[?{_BEGUN_ITEMS}|\[\[{_ITEMS}\]|［{_BEGUN_ITEMS}|【{_BEGUN_ITEMS}|【{_ITEMS}†[^】\n]{{0,30}}"
    rf"|[(（](?:{_BLANK}I?|{_ID}{_BEGUN_ITEMS})|##?|##\d{{1,3}}\$?",
    re.IGNORECASE,
)
_PARTS = re.compile(rf"({_NUMBER})(?:{_DASH}({_NUMBER}))?")
_LINKS = ("(http:", "(https:", "(mailto:", "(www.", "(/", "(#", "(.", "(<")
_ASSIGNED = re.compile(r" ?(?:[-+*/%]?=|\+\+|--)|\.[a-z_]")
_ASSIGNED_BEGUN = re.compile(r" ?[-+*/%]?|\.")
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*(?:\.[A-Za-z_$][A-Za-z0-9_$]*)*\Z")
_CODE = re.compile(r"[a-z]{1,3}|.*[_$].*|[a-z]{2,}[A-Z].*|[a-z]{2,}(?:\.[a-z]\w*)+")
_UNIT = re.compile(r"\d[ \u00a0]?[a-z]{1,3}\Z")
_CHAINED = re.compile(r"[A-Za-z0-9_](?:\[[^\[\]\s]*\]|\([^()\s]*\))\Z")

Reading = Literal["unfinished", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """Something of a marker's form, up to `end`.

    `numbers` is None for a link or an index, which stay as they are.
    """

    end: int
    numbers: tuple[int, ...] | None = None


def read_marker(
    text: str, start: int, before: str, *, first: int, complete: bool
) -> Marker | Reading:
    """Return the marker that begins at `start`, or why there is none.

    `before` is the text in front of it, `first` the lowest number that counts. More text could
    change the reading "unfinished", unless the text is complete.
    """
    match = _COMPLETE.match(text, start)
    if match is None or match.end() - start > MARKER_LENGTH:
        begun = _BEGUN.fullmatch(text, start, min(len(text), start + MARKER_LENGTH))
        waits = begun is not None and len(text) - start < MARKER_LENGTH and not complete
        return "unfinished" if waits else "none"
    end, rest = match.end(), text[match.end() : match.end() + 10]
    if not rest and not complete:
        return "unfinished"
    if match.lastgroup in {"square", "double"}:
        reading = _read_surroundings(before, rest, complete=complete)
        if reading is not None:
            return Marker(end=end) if reading == "verbatim" else "unfinished"
    numbers = _numbers(match, first)
    return "none" if numbers is None else Marker(end=end, numbers=numbers)


def _read_surroundings(
    before: str, rest: str, *, complete: bool
) -> Literal["verbatim", "unfinished"] | None:
    """Tell whether square brackets belong to a link or pick an element."""
    if rest.startswith(_LINKS):
        return "verbatim"
    waits = rest and any(link.startswith(rest) for link in _LINKS)
    if _WORD.search(before):
        if _ASSIGNED.match(rest):
            return "verbatim"
        waits = waits or _ASSIGNED_BEGUN.fullmatch(rest) is not None
    if waits and not complete:
        return "unfinished"
    return "verbatim" if _is_indexed(before) else None


def _is_indexed(before: str) -> bool:
    """Tell whether a bracket behind `before` belongs to code, as in `arr[1]`.

    Only names that look like code count: of at most three small letters (and no unit behind a
    number), with an underscore, in camel case, or joined by dots. A longer word is prose. What
    stands behind an equals sign is a list.
    """
    if _CHAINED.search(before):
        return True
    if before.rstrip(BLANKS).endswith("="):
        return True
    word = _WORD.search(before)
    if word is None or _CODE.fullmatch(word[0]) is None:
        return False
    return _UNIT.search(before) is None


def _numbers(match: re.Match[str], first: int) -> tuple[int, ...] | None:
    """Return the numbers, or nothing where brackets around numbers mean something else.

    Without a label, such as in `[2024]`, `[0, 1]` or `[01]`, a number counts as a marker only
    from `first` to 99 and written without a leading zero. A range has at most ten numbers.
    """
    kind = match.lastgroup or ""
    inner = match[kind]
    labelled = kind == "hash" or not inner.lstrip(BLANKS)[:1].isdigit()
    numbers: list[int] = []
    for low, high in _PARTS.findall(inner):
        lowest, highest = int(low), int(high or low)
        plain = (
            first <= lowest and highest <= PLAIN_LARGEST and str(lowest)[0] == str(int(low[0]))
        )
        if not (labelled or plain) or not lowest <= highest < lowest + LONGEST_RANGE:
            return None
        numbers += range(lowest, highest + 1)
    return tuple(dict.fromkeys(numbers))
