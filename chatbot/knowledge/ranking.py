"""Ranks assistants by their names and descriptions, without asking anybody."""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from chatbot.domain import Assistant

NAME_WEIGHT = 3.0
SATURATION = 1.2
SHORTEST_MENTION = 2
_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\W_\u3040-\uffff]+")
_WIDE = "\u3040"


def rank(query: str, assistants: Sequence[Assistant], limit: int) -> list[Assistant]:
    """Return the `limit` assistants whose name and description are closest to the query.

    Rare terms weigh more than common ones, the name more than the description. Assistants that
    share nothing with the query keep their order and come last.
    """
    bags = [_bag(assistant) for assistant in assistants]
    wanted = set(_terms(query))
    weights = {
        term: math.log(1 + (len(bags) + 0.5) / (sum(term in bag for bag in bags) + 0.5))
        for term in wanted
    }
    scores = [
        sum(
            weights[term] * bag[term] / (bag[term] + SATURATION) for term in wanted & bag.keys()
        )
        for bag in bags
    ]
    order = sorted(range(len(bags)), key=lambda index: -scores[index])
    return [assistants[index] for index in order[:limit]]


def mentioned(question: str, assistants: Sequence[Assistant]) -> list[Assistant]:
    """Return the assistants whose name stands in the question, in the order of the question.

    A name inside a longer name that also stands there is not meant. Names of one character
    are never found, and a name in letters only as a whole word.
    """
    text = _plain(question)
    spans: list[tuple[int, int, Assistant]] = []
    for assistant in assistants:
        name = _plain(assistant.name)
        if len(name) >= SHORTEST_MENTION:
            begin = r"(?<![a-z0-9])" if _is_latin(name[0]) else ""
            end = r"(?![a-z0-9])" if _is_latin(name[-1]) else ""
            match = re.search(f"{begin}{re.escape(name)}{end}", text)
            if match is not None:
                spans.append((*match.span(), assistant))
    meant = [
        (start, assistant)
        for start, end, assistant in spans
        if not any(_inside((start, end), (low, high)) for low, high, _ in spans)
    ]
    return [assistant for _, assistant in sorted(meant, key=lambda found: found[0])]


@lru_cache(maxsize=4096)
def _bag(assistant: Assistant) -> Mapping[str, float]:
    bag: dict[str, float] = {}
    for text, weight in ((assistant.description, 1.0), (assistant.name, NAME_WEIGHT)):
        for term in _terms(text):
            bag[term] = bag.get(term, 0.0) + weight
    return bag


def _terms(text: str) -> Iterator[str]:
    """Yield words in small letters, and pairs of characters where a script has no spaces."""
    for run in _RUN.findall(_plain(text)):
        if run[0] < _WIDE:
            yield run.removesuffix("s") if len(run) > SHORTEST_MENTION + 1 else run
        elif len(run) == 1:
            yield run
        else:
            yield from (run[at : at + 2] for at in range(len(run) - 1))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _inside(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span != other and other[0] <= span[0] and span[1] <= other[1]
