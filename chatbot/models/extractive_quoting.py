"""Chooses the sentences of retrieved passages that answer a question best."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatbot.terms import Term, coverage, terms
from chatbot.text import language, sentences, tokens

MOST_QUOTATIONS = 5
LONGEST_QUOTATION = 400
LONGEST_PASSAGE = 4000
MOST_PASSAGES = 30

_HEADING = 0.7  # what a match in the heading counts, beside one in the sentence itself
_ORDER = 0.03  # what each place further back in the passages costs
_OTHER_LANGUAGE = 0.5
_WORTH = 0.6  # the share of the best sentence's worth that the others must have

_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$")
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+•·]\s+|\d{1,3}[.)、]\s+)+")
_EMPHASIS = re.compile(r"(\*{1,3}|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_MARKER = re.compile(r"\s*(?:\[\s*(?:ID\s*:\s*)?\d[\d\s,]*\]|【\s*\d[\d\s,，、]*】)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]+")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence or table row, and the number of its passage."""

    text: str
    number: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    quotation: Quotation
    place: tuple[int, int]  # of the passage, and of the sentence in it
    tokens: frozenset[str]
    heading: frozenset[str]
    foreign: bool


def quotations(question: str, passages: Sequence[Mapping[str, Any]]) -> list[Quotation]:
    """Return the best sentences, in the order they stand in."""
    candidates = list(_candidates(language(question), passages[:MOST_PASSAGES]))
    asked = _weighed(terms(question), candidates)
    worth = {each.place: _worth(asked, each) for each in candidates}
    best = max(worth.values(), default=0.0)
    chosen: list[_Candidate] = []
    said: frozenset[str] = frozenset()
    for each in sorted(candidates, key=lambda each: (-worth[each.place], each.place)):
        if len(chosen) == MOST_QUOTATIONS or worth[each.place] < _WORTH * best:
            break
        repeats = chosen and len(each.tokens - said) * 3 < len(each.tokens)
        if not repeats:
            chosen.append(each)
            said |= each.tokens
    return [each.quotation for each in sorted(chosen, key=lambda each: each.place)]


def _candidates(wanted: str, passages: Sequence[Mapping[str, Any]]) -> Iterator[_Candidate]:
    for at, passage in enumerate(passages):
        text = str(passage.get("text") or "")[:LONGEST_PASSAGE]
        heading = frozenset(tokens(str(passage.get("location") or "")))
        foreign = language(text) != wanted
        for place, line in enumerate(_quotable(text)):
            yield _Candidate(
                quotation=Quotation(line, int(passage.get("number", 0))),
                place=(at, place),
                tokens=frozenset(tokens(line)),
                heading=heading,
                foreign=foreign,
            )


def _weighed(asked: Sequence[Term], candidates: Sequence[_Candidate]) -> list[Term]:
    """Return the question's words, weighed by how well they tell the sentences apart."""
    count = len(candidates) + 1
    found = []
    for term in asked:
        holders = sum(term.presence(each.tokens) >= 1 for each in candidates)
        rarity = math.log(count / (holders + 0.5)) / math.log(count + 1)
        found.append(Term(term.text, term.surface, term.weight * max(0.1, rarity), term.parts))
    return found


def _worth(asked: Sequence[Term], candidate: _Candidate) -> float:
    own = coverage(asked, candidate.tokens)
    worth = own + _HEADING * coverage(asked, candidate.heading) - _ORDER * candidate.place[0]
    return worth * _OTHER_LANGUAGE if candidate.foreign else worth


def _quotable(text: str) -> Iterator[str]:
    """Give the sentences of a passage, and its table rows with the names of their columns."""
    head: list[str] = []
    lines = text.split("\n")
    for at, line in enumerate(lines):
        row = _ROW.match(line)
        if not row:
            head = []
            for sentence in sentences(_MARKUP.sub("", line)):
                if clean := _clean(sentence):
                    yield clean
        elif _RULE.match(line):
            continue
        elif at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            head = _cells(row.group(1))
        elif clean := _clean(_named(head, _cells(row.group(1)))):
            yield clean


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
    """Return the sentence on one line, without mark-up and without markers of its own."""
    text = _CONTROL.sub(" ", sentence)
    text = _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", text))
    text = _MARKER.sub("", text).strip()
    if not any(character.isalnum() for character in text):
        return ""
    return text if len(text) <= LONGEST_QUOTATION else f"{text[:LONGEST_QUOTATION].rstrip()}…"
