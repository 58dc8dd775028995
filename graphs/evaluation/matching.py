"""Whether something stands in a text: facts, numbers, the passage that a case names."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from graphs.evaluation.cases import OneOf

_THOUSANDS = re.compile(r"(?<=\d)[,，](?=\d{3}(?!\d))")
_TEN_THOUSANDS = re.compile(r"(\d+(?:\.\d+)?)\s*万")
_MARKER = re.compile(r"\[\d+\]")
_LIST_NUMBER = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")
_ENGLISH = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)
_TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "hundred": 100}
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_WORDS = {word: number for number, word in enumerate(_ENGLISH)} | _TENS
_WORDS |= {month: number for number, month in enumerate(_MONTHS, 1)}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
_DIGITS = {digit: number for number, digit in enumerate("零一二三四五六七八九")} | {"两": 2}
_CHINESE = re.compile("[零一二两三四五六七八九]?[十百]?[零一二两三四五六七八九十百]")


class Quoted(Protocol):
    """A passage, or the citation of one."""

    @property
    def document(self) -> str:
        """The name of the document."""
        ...

    @property
    def text(self) -> str:
        """What stands in it."""
        ...

    @property
    def location(self) -> str:
        """Where in the document it stands."""
        ...


def normalized(text: str) -> str:
    """Return the text without differences of case, width, white space and large numbers."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _TEN_THOUSANDS.sub(
        lambda match: f"{float(match[1]) * 10_000:.0f}", _THOUSANDS.sub("", plain)
    )


def contains(text: str, wanted: OneOf) -> bool:
    """Return whether the text has it, or one of several; a number not inside another one."""
    if not isinstance(wanted, str):
        return any(contains(text, each) for each in wanted)
    words = normalized(wanted)
    before = r"(?<!\d)(?<!\d\.)" if words[0].isdigit() else ""
    after = r"(?!\d)(?!\.\d)" if words[-1].isdigit() else ""
    return re.search(before + re.escape(words) + after, normalized(text)) is not None


def share(text: str, wanted: Sequence[OneOf]) -> float:
    """Return how much of what is wanted stands in the text, from 0 to 1."""
    return sum(contains(text, each) for each in wanted) / len(wanted)


def is_from(source: OneOf, quoted: Quoted, *, exactly: bool = True) -> bool:
    """Return whether a passage is the one meant by `name` or `name#words of the passage`.

    Unless `exactly`, every passage of the document is.
    """
    if not isinstance(source, str):
        return any(is_from(each, quoted, exactly=exactly) for each in source)
    name, _, words = source.partition("#")
    if PurePosixPath(quoted.document).name != name:
        return False
    return not exactly or words in quoted.text or words in quoted.location


def numbers(text: str) -> set[str]:
    """Return the numbers in an answer, but those of citations and of lists."""
    said = _LIST_NUMBER.sub(" ", _MARKER.sub(" ", unicodedata.normalize("NFKC", text)))
    return set(_NUMBER.findall(normalized(said)))


def known_numbers(texts: Iterable[str]) -> set[str]:
    """Return the numbers in texts, also those that are written as words."""
    found: set[str] = set()
    for text in texts:
        plain = normalized(text)
        found.update(_NUMBER.findall(plain))
        found.update(str(_WORDS[word]) for word in _WORD.findall(plain))
        found.update(str(_value(word)) for word in _CHINESE.findall(plain))
    return found


def _value(word: str) -> int:
    """Return the number that a Chinese word below a thousand means."""
    value = digit = 0
    for character in word:
        if (unit := {"十": 10, "百": 100}.get(character)) is not None:
            value += (digit or 1) * unit
            digit = 0
        else:
            digit = _DIGITS[character]
    return value + digit
