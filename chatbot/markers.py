"""The forms in which models write citation markers, and the text where none is meant."""

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
TAIL = 48
CODE_INDENT = 4
FENCE_LENGTH = 3

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


class Prose:
    """Follows a text and knows where it is prose, and what stands last.

    Code spans, fenced code, and quoted lines (`>`) are not prose. Follows CommonMark as far as
    that can be known without looking ahead: an open span ends with its paragraph.
    """

    def __init__(self) -> None:
        self.before = ""
        self.line_is_empty = True
        self._escaped = False
        self._indent = 0
        self._mode: Literal["prose", "code", "fence", "fence_end", "quote"] = "prose"
        self._fence = ("`", 0)
        self._opening_line = False
        self._run = ("", 0, False)

    @property
    def is_plain(self) -> bool:
        """Whether only a character that begins something can change what the text is."""
        return (
            self._mode == "prose"
            and not self.line_is_empty
            and not self._run[1]
            and not self._escaped
        )

    def is_verbatim(self, character: str) -> bool:
        """Tell whether `character`, which comes next, belongs to code or to a quotation."""
        if self._run[1] and character != self._run[0]:
            self._end_run()
        return self._mode != "prose" or self._escaped

    def take(self, piece: str) -> None:
        """Go on by a piece of the text."""
        for character in piece if len(piece) == 1 else (piece[:1], piece[-1:]):
            self._take(character)
        self.before = (self.before + piece)[-TAIL:]

    def take_marker(self) -> None:
        """Go on behind a marker that is shown."""
        self._take("]")
        self.before = ""

    def _take(self, character: str) -> None:
        if self._run[1] and character != self._run[0]:
            self._end_run()
        escaped, self._escaped = self._escaped, False
        if character in "`~" and not escaped:
            char, length, at_start = self._run
            if char != character:
                length, at_start = 0, self.line_is_empty and self._indent < CODE_INDENT
            self._run = (character, length + 1, at_start)
            self.line_is_empty = False
            return
        if character == "\n":
            self._end_line()
        elif character in BLANKS or character == "\r":
            self._indent += self.line_is_empty
        else:
            if character == ">" and self.line_is_empty and self._mode == "prose":
                self._mode = "quote"
            elif character == "\\" and not escaped and self._mode == "prose":
                self._escaped = True
            if self._mode == "fence_end":
                self._mode = "fence"
            self.line_is_empty = False

    def _end_line(self) -> None:
        if self._mode in {"quote", "fence_end"} or (
            self._mode == "code" and self.line_is_empty
        ):
            self._mode = "prose"
        self._opening_line = False
        self.line_is_empty = True
        self._indent = 0

    def _end_run(self) -> None:
        (char, length, at_start), self._run = self._run, ("", 0, False)
        if self._mode == "prose":
            if at_start and length >= FENCE_LENGTH:
                self._mode, self._fence, self._opening_line = "fence", (char, length), True
            elif char == "`":
                self._mode, self._fence = "code", (char, length)
        elif (
            self._mode == "fence"
            and (char, self._fence[0]) == ("`", "`")
            and self._opening_line
        ):
            self._mode = "prose" if length == self._fence[1] else "code"
        elif self._mode == "fence" and at_start and char == self._fence[0]:
            if length >= self._fence[1]:
                self._mode = "fence_end"
        elif self._mode == "fence_end":
            self._mode = "fence"
        elif self._mode == "code" and (char, length) == self._fence:
            self._mode = "prose"
