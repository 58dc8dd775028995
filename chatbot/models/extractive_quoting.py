"""Chooses the sentences of retrieved passages that answer a question best."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from chatbot.models.extractive_clarity import LONGEST_PASSAGE, MOST_PASSAGES, passage_analysis
from chatbot.models.extractive_wording import names
from chatbot.relevance import Analysis, features
from chatbot.terms import Term, coverage, terms
from chatbot.text import language, sentences, tokens

MOST_QUOTATIONS = 5
MOST_STEPS = 8
LONGEST_QUOTATION = 400

_HEADING = 0.6  # what a match in the heading counts, beside one in the sentence itself
_WHOLE = 0.15  # what a match counts, however common the words are in the passages
_OTHER_LANGUAGE = 0.5
_AMOUNT = 1.6  # what a number counts where an amount is asked for
_WORTH = 0.55  # the share of the best sentence's worth that the others must have

_ASKS_AMOUNT = re.compile(
    r"\bhow (?:much|many|long|often|old|far|big|large|deep|high)\b|\b(?:most|maximum|limit)\b"
    r"|多[少久长大深高远]|几|最[多高长低少]|上限",
    re.IGNORECASE,
)
_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$")
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+•·]\s+|\d{1,3}[.)、]\s+)+")
_STEP = re.compile(r"^\s*\d{1,3}[.)、]\s")
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
    passage: Analysis
    foreign: bool
    step: bool  # whether it belongs to a numbered list


def quotations(
    question: str, passages: Sequence[Mapping[str, Any]], most: int = MOST_QUOTATIONS
) -> list[Quotation]:
    """Return the best sentences, those of the best passage first, as they follow each other.

    There are at most so many, but for one with a word that they lack, and for other steps.
    """
    candidates = list(_candidates(language(question), passages[:MOST_PASSAGES]))
    scale = _Scale.of(terms(question), candidates)
    worth = {each.place: scale.worth(each) for each in candidates}
    if _ASKS_AMOUNT.search(question):
        for each in candidates:
            if re.search(r"\d", each.quotation.text):
                worth[each.place] *= _AMOUNT
    best = max(worth.values(), default=0.0)
    chosen: list[_Candidate] = []
    said: frozenset[str] = frozenset()
    for each in sorted(candidates, key=lambda each: (-worth[each.place], each.place)):
        if len(chosen) == most or worth[each.place] < _WORTH * best:
            break
        repeats = chosen and len(each.tokens - said) * 3 < len(each.tokens)
        if not repeats:
            chosen.append(each)
            said |= each.tokens
    chosen += _unsaid(scale.terms, candidates, worth, said)
    order = list(dict.fromkeys(each.place[0] for each in chosen))
    chosen += _missing_steps(candidates, chosen)
    chosen.sort(key=lambda each: (order.index(each.place[0]), each.place))
    return [each.quotation for each in chosen]


def _unsaid(
    asked: Sequence[Term],
    candidates: Sequence[_Candidate],
    worth: Mapping[tuple[int, int], float],
    said: frozenset[str],
) -> list[_Candidate]:
    """Return the best sentence with a telling word of the question that none has so far."""
    missing = [term for term in asked if names(term) and not term.presence(said)]
    able = [
        each for each in candidates if any(term.presence(each.tokens) >= 1 for term in missing)
    ]
    best = max(able, key=lambda each: worth[each.place], default=None)
    return [] if best is None else [best]


def _missing_steps(
    candidates: Sequence[_Candidate], chosen: Sequence[_Candidate]
) -> list[_Candidate]:
    """Return the other steps, where the best sentence is one of instructions quoted in part."""
    if not chosen or not chosen[0].step:
        return []
    steps = [each for each in candidates if each.step and each.place[0] == chosen[0].place[0]]
    missing = [each for each in steps if each not in chosen]
    return missing if len(missing) + 1 < len(steps) <= MOST_STEPS else []


def _candidates(wanted: str, passages: Sequence[Mapping[str, Any]]) -> Iterator[_Candidate]:
    for at, passage in enumerate(passages):
        text = str(passage.get("text") or "")[:LONGEST_PASSAGE]
        taken = passage_analysis(passage)
        foreign = language(text) != wanted
        for place, (line, step) in enumerate(_quotable(text)):
            yield _Candidate(
                quotation=Quotation(line, int(passage.get("number", 0))),
                place=(at, place),
                tokens=frozenset(tokens(line)),
                passage=taken,
                foreign=foreign,
                step=step,
            )


@dataclass(frozen=True, slots=True)
class _Scale:
    """The question's words, with how well each tells the passages and their headings apart."""

    terms: tuple[Term, ...]
    in_sentences: tuple[float, ...]
    in_headings: tuple[float, ...]
    passages: Mapping[int, float]  # how each passage compares with the best one

    @classmethod
    def of(cls, asked: Sequence[Term], candidates: Sequence[_Candidate]) -> Self:
        """Measure the words against everything that could be quoted."""
        analyses = {each.place[0]: each.passage for each in candidates}
        relevance = {
            place: features(asked, passage).relevance for place, passage in analyses.items()
        }
        best = max(relevance.values(), default=1.0)
        texts = [frozenset().union(*each.sentences) for each in analyses.values()]
        headings = [each.heading for each in analyses.values()]
        return cls(
            terms=tuple(asked),
            in_sentences=_rarities(asked, texts),
            in_headings=_rarities(asked, headings),
            passages={each: found / best for each, found in relevance.items()},
        )

    def worth(self, candidate: _Candidate) -> float:
        """Return how well a sentence answers."""
        total = sum(term.weight for term in self.terms) or 1.0
        worth = _WHOLE * coverage(self.terms, candidate.tokens)
        for term, own, above in zip(
            self.terms, self.in_sentences, self.in_headings, strict=True
        ):
            worth += term.weight * own * term.presence(candidate.tokens) / total
            heading = candidate.passage.heading
            worth += _HEADING * term.weight * above * term.presence(heading) / total
        worth *= self.passages[candidate.place[0]] ** 2
        return worth * _OTHER_LANGUAGE if candidate.foreign else worth


def _rarities(asked: Sequence[Term], texts: Sequence[frozenset[str]]) -> tuple[float, ...]:
    """Return for each word how few of the texts have it, between 0 and 1."""
    count = len(texts) + 1
    holders = [sum(term.presence(text) >= 1 for text in texts) for term in asked]
    return tuple(
        math.log((count + 0.5) / (each + 0.5)) / math.log(count / 0.5 + 1) for each in holders
    )


def _quotable(text: str) -> Iterator[tuple[str, bool]]:
    """Give sentences, and table rows with the names of their columns; which are steps."""
    head: list[str] = []
    lines = text.split("\n")
    for at, line in enumerate(lines):
        row = _ROW.match(line)
        if not row:
            head = []
            for sentence in sentences(_MARKUP.sub("", line)):
                if clean := _clean(sentence):
                    yield clean, bool(_STEP.match(line))
        elif _RULE.match(line):
            continue
        elif at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            head = _cells(row.group(1))
        elif clean := _clean(_named(head, _cells(row.group(1)))):
            yield clean, False


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
