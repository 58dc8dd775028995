"""Checks the citation markers of an answer while it streams."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chatbot.domain import Passage
from chatbot.markers import BLANKS, OPENERS, Marker, read_marker
from chatbot.prose import Prose

_PLAIN = re.compile(r"[^\[［【(（#`~>\\\n]+")
_RUN = re.compile(r"[^\s\[［【(（#`~>\\]+")  # nothing that begins or ends a marker or code


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A passage that the answer cites. `number` is the one in the text."""

    number: int
    document: str
    document_id: str
    assistant: str
    text: str
    score: float
    location: str = ""
    url: str | None = None

    def as_json(self) -> Mapping[str, Any]:
        """Return the citation as the `citations` event carries it."""
        return asdict(self)


class CitationFilter:
    """Lets an answer pass and keeps its markers in line with the passages.

    Every form of marker that models write becomes `[n]`, a number without a passage disappears
    together with one blank before it. Code, links and indices stay as they are.
    Held back is never more than a blank and one unfinished marker.

    `first` is the number that the text gives to the first passage: 1, or 0 in answers of
    RAGFlow's own assistants. Shown to people are always numbers from 1. Without `passages`
    (None) they are not known yet: every number passes until `resolve` tells them.
    """

    def __init__(self, passages: Sequence[Passage] | None, *, first: int = 1) -> None:
        self._passages = passages
        self._first = first
        self._held = ""
        self._prose = Prose()
        self._cited: set[int] = set()

    @property
    def cited(self) -> tuple[Citation, ...]:
        """The passages cited so far, in the order of their numbers."""
        known = self._passages or ()
        return tuple(
            _citation(number, known[number - 1])
            for number in sorted(self._cited)
            if number <= len(known)
        )

    def resolve(self, passages: Sequence[Passage]) -> None:
        """Tell the passages that were not known from the beginning."""
        self._passages = passages

    def feed(self, text: str) -> str:
        """Take the next piece of the answer and return what can be shown now."""
        text = self._held + text
        if not self._prose.is_plain or _PLAIN.fullmatch(text) is None:
            return self._advance(text, complete=False)
        # Nothing here begins anything: most pieces of an answer are like this.
        self._held = text[-1] if text[-1] in BLANKS else ""
        shown = text.removesuffix(self._held)
        if shown:
            self._prose.take(shown)
        return shown

    def finish(self) -> str:
        """Return what was still held back; the answer ends here."""
        return self._advance(self._held, complete=True)

    def _advance(self, text: str, *, complete: bool) -> str:
        shown: list[str] = []
        position = 0
        while position < len(text):
            taken = self._step(text, position, shown, complete=complete)
            if not taken:
                break
            position += taken
        self._held = text[position:]
        return "".join(shown)

    def _step(self, text: str, position: int, shown: list[str], *, complete: bool) -> int:
        """Show or drop what comes next; return how far that went, 0 if it must wait."""
        if (run := _RUN.match(text, position)) is not None:
            return self._show(run[0], shown)
        character = text[position]
        if self._prose.is_verbatim(character):
            return self._show(character, shown)
        opener = position + (character in BLANKS)
        if opener == len(text):
            return self._show(character, shown) if complete else 0
        if text[opener] not in OPENERS:
            return self._show(character, shown)
        before = self._prose.before + text[position:opener]
        marker = read_marker(text, opener, before, first=self._first, complete=complete)
        if isinstance(marker, Marker):
            return self._replace(text, position, marker, shown)
        return 0 if marker == "unfinished" else self._show(character, shown)

    def _show(self, piece: str, shown: list[str]) -> int:
        self._prose.take(piece)
        shown.append(piece)
        return len(piece)

    def _replace(self, text: str, position: int, marker: Marker, shown: list[str]) -> int:
        """Show the marker as `[n]`, or drop it and one blank if it names no passage."""
        if marker.numbers is None:
            return self._show(text[position : marker.end], shown)
        numbers = [
            number - self._first + 1
            for number in marker.numbers
            if number >= self._first
            and (self._passages is None or number - self._first < len(self._passages))
        ]
        blank = text[position] if text[position] in BLANKS else ""
        following = text[marker.end : marker.end + 1]
        if numbers:
            self._cited.update(numbers)
            self._prose.take_marker()
            shown.append(blank + "".join(f"[{number}]" for number in numbers))
        elif blank and following.isascii() and following.isalnum():
            self._show(blank, shown)
        elif self._prose.line_is_empty and following and following in BLANKS:
            return marker.end + 1 - position
        return marker.end - position


def _citation(number: int, passage: Passage) -> Citation:
    return Citation(
        number=number,
        document=passage.document,
        document_id=passage.document_id,
        assistant=passage.assistant,
        text=passage.text,
        score=passage.score,
        location=passage.location,
        url=passage.url,
    )
