"""Chooses the sentences of retrieved passages that answer a question best."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatbot.terms import Term, coverage, terms
from chatbot.text import language, sentences, tokens

MOST_QUOTATIONS = 4
LONGEST_QUOTATION = 400
_LONGEST_PASSAGE = 4000
_MOST_PASSAGES = 30
_WORTH = 0.55  # of the best sentence's worth, below which a sentence is not quoted

_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$")
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+•·]\s+|\d{1,3}[.)、]\s*)+")
_MARKER = re.compile(r"\s*(?:\[\s*(?:ID\s*:\s*)?\d[\d\s,]*\]|【\s*\d[\d\s,，、]*】)(?!\()")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]+")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence or table row, and the number of its passage."""

    text: str
    number: int


@dataclass(frozen=True, slots=True)
class _Unit:
    quotation: Quotation
    place: tuple[int, int]
    tokens: frozenset[str]
    worth: float


def quotations(question: str, passages: Sequence[Mapping[str, Any]]) -> list[Quotation]:
    """Return the best sentences, in the order they stand in."""
    asked = terms(question)
    wanted = language(question)
    units = [
        _Unit(quotation, (at, place), found, _worth(asked, found, heading, passage, wanted, at))
        for at, passage in enumerate(passages[:_MOST_PASSAGES])
        for heading in [frozenset(tokens(str(passage.get("location") or "")))]
        for place, quotation in enumerate(_quotable(passage))
        for found in [frozenset(tokens(quotation.text))]
    ]
    return [unit.quotation for unit in sorted(_chosen(asked, units), key=lambda u: u.place)]


def _worth(
    asked: Sequence[Term],
    found: frozenset[str],
    heading: frozenset[str],
    passage: Mapping[str, Any],
    wanted: str,
    at: int,
) -> float:
    own = coverage(asked, found)
    with_heading = coverage(asked, found | heading)
    other_language = language(str(passage.get("text", ""))) != wanted
    return 0.6 * own + 0.4 * with_heading - 0.01 * at - (0.25 if other_language else 0.0)


def _chosen(asked: Sequence[Term], units: list[_Unit]) -> list[_Unit]:
    """Take the best unit, then those that add most to what is already said."""
    left = sorted(units, key=lambda unit: (-unit.worth, unit.place))[:200]
    chosen: list[_Unit] = []
    said: frozenset[str] = frozenset()
    while left and len(chosen) < MOST_QUOTATIONS:
        if chosen:
            left = [
                unit
                for unit in left
                if unit.worth >= _WORTH * chosen[0].worth
                and len(unit.tokens - said) * 3 > len(unit.tokens)
            ]
            left.sort(key=lambda unit: (-unit.worth, unit.place))
        if not left:
            break
        chosen.append(left.pop(0))
        said |= chosen[-1].tokens
    return chosen


def _quotable(passage: Mapping[str, Any]) -> Iterator[Quotation]:
    number = int(passage.get("number", 0))
    head: list[str] = []
    text = str(passage.get("text") or "")[:_LONGEST_PASSAGE]
    lines = text.split("\n")
    for at, line in enumerate(lines):
        row = _ROW.match(line)
        if not row:
            head = []
            for sentence in sentences(line):
                if clean := _clean(sentence):
                    yield Quotation(clean, number)
        elif _RULE.match(line):
            continue
        elif at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            head = _cells(row.group(1))
        elif clean := _clean(_named(head, _cells(row.group(1)))):
            yield Quotation(clean, number)


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)]


def _named(head: Sequence[str], cells: Sequence[str]) -> str:
    """Return a table row as a line that can be read without its table."""
    if len(head) != len(cells):
        return " · ".join(cell for cell in cells if cell)
    colon = "：" if language("".join(head)) == "zh" else ": "
    return " · ".join(
        f"{name}{colon}{cell}" if name else cell
        for name, cell in zip(head, cells, strict=True)
        if cell
    )


def _clean(sentence: str) -> str:
    """Return the sentence on one line, without list marks and without markers of its own."""
    text = _MARKUP.sub("", _CONTROL.sub(" ", sentence)).strip()
    text = _MARKER.sub("", text)
    if not any(character.isalnum() for character in text):
        return ""
    return text if len(text) <= LONGEST_QUOTATION else f"{text[:LONGEST_QUOTATION].rstrip()}…"
