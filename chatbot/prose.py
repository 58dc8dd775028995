"""Follows a text and tells its prose from its code."""

from typing import Literal

from chatbot.markers import BLANKS

TAIL = 48
CODE_INDENT = 4
FENCE_LENGTH = 3


class Prose:
    """Follows a text and knows where it is prose, and what stands last.

    Code spans and fenced code are not prose, in block quotes (`>`) as outside. Follows
    CommonMark as far as that can be known without looking ahead: an open span ends with its
    paragraph, a fence with the block quote that it stands in.
    """

    def __init__(self) -> None:
        self.before = ""
        self.line_is_empty = True
        self._escaped = False
        self._indent = 0
        self._quotes = 0  # the block quotes that the line stands in
        self._mode: Literal["prose", "code", "fence", "fence_end"] = "prose"
        self._fence = ("`", 0)
        self._fence_quotes = 0
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
        """Tell whether `character`, which comes next, belongs to code or a quote's mark."""
        self._end_what_ends(character)
        behind_mark = self._indent < 0 and character in BLANKS
        return self._mode != "prose" or self._escaped or behind_mark

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
        self._end_what_ends(character)
        escaped, self._escaped = self._escaped, False
        if self._is_quote_mark(character):
            self._quotes += 1
            self._indent = -1  # One blank behind the mark belongs to it.
        elif character in "`~" and not escaped:
            char, length, at_start = self._run
            if char != character:
                length, at_start = 0, self.line_is_empty and self._indent < CODE_INDENT
            self._run = (character, length + 1, at_start)
            self.line_is_empty = False
        elif character == "\n":
            self._end_line()
        elif character in BLANKS or character == "\r":
            self._indent += self.line_is_empty
        else:
            if character == "\\" and not escaped and self._mode == "prose":
                self._escaped = True
            if self._mode == "fence_end":
                self._mode = "fence"
            self.line_is_empty = False

    def _end_line(self) -> None:
        if self._mode == "fence_end" or (self._mode == "code" and self.line_is_empty):
            self._mode = "prose"
        self._opening_line = False
        self.line_is_empty = True
        self._indent = self._quotes = 0

    def _is_quote_mark(self, character: str) -> bool:
        """Tell whether a `>` makes a block quote: fenced code has none of its own."""
        begins = character == ">" and self.line_is_empty and self._indent < CODE_INDENT
        return begins and (self._mode != "fence" or self._quotes < self._fence_quotes)

    def _end_what_ends(self, character: str) -> None:
        """End a run of other characters, and code that the line leaves or cannot go on in."""
        if self._run[1] and character != self._run[0]:
            self._end_run()
        if not self.line_is_empty or character in BLANKS or self._is_quote_mark(character):
            return
        left = self._mode == "fence" and self._quotes < self._fence_quotes
        if left or (self._mode == "code" and self._quotes > self._fence_quotes):
            self._mode = "prose"

    def _end_run(self) -> None:
        (char, length, at_start), self._run = self._run, ("", 0, False)
        if self._mode == "prose":
            if at_start and length >= FENCE_LENGTH:
                self._mode, self._fence, self._opening_line = "fence", (char, length), True
            elif char == "`":
                self._mode, self._fence = "code", (char, length)
            self._fence_quotes = self._quotes
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
