"""Tells tool calls that a model wrote as text from the answer, while both stream."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from chatbot.models.call_forms import Call, FunctionCall, JsonCall

_FUNCTION = "<function="
_LITERALS = (
    *("<tool_call>", "<tool_calls>", "<toolcall>", "<toolcalls>", "<|tool_call|>"),
    *("<|python_tag|>", "[tool_calls]", _FUNCTION),
)
_FENCE = r"`{3,}[^`\n]{0,60}\n"
_OPENER = re.compile("|".join([*map(re.escape, _LITERALS), _FENCE]), re.IGNORECASE)
_FENCE_BEGUN = re.compile(r"(?<!`)(?:`{1,2}|`{3,}[^`\n]{0,60})\Z")
_FENCE_END = re.compile(r"`{3,}")
_LONGEST_BEGUN = 80  # characters at the end of a text in which an opener may have begun
_SPECIAL = re.compile(r"[<`\[\n]")
_BLANK = re.compile(r"\s*")


class WrittenCalls:
    """Lets the text of a reply pass and keeps back the calls that are written in it.

    A call of one of `names` stands behind a tag or marker of its own, in a fenced block, or
    first of all. What may become one is held until it is known: an object that has another
    member than a call has, or names something else, is shown at once. A tag behind a backtick
    is quoted; code that is shown holds no calls. What follows a call is dropped: the model has
    not seen its result when it writes that.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.calls: list[Call] = []
        self._names = names
        self._text = ""
        self._at = 0  # up to where the text was shown, or read
        self._last = ""  # the character before that
        self._begun = False  # whether more than white space was shown
        self._in_code = False
        self._candidate: _Candidate | None = None

    def feed(self, text: str) -> str:
        """Take the next piece of the reply and return what can be shown now."""
        if not self._names:
            return text
        quiet = self._begun and not (self._text or self._in_code or self.calls)
        if quiet and not _SPECIAL.search(text):
            self._last = text[-1:] or self._last
            return text
        self._text += text
        return self._advance(complete=False)

    def end(self) -> str:
        """Return what was held back and is no call; the reply ends here."""
        return self._advance(complete=True)

    def _advance(self, *, complete: bool) -> str:
        shown: list[str] = []
        while self._candidate or self._at < len(self._text):
            if self._candidate:
                piece = self._read(self._candidate, complete=complete)
            elif self._in_code:
                piece = self._pass_code(complete=complete)
            else:
                piece = self._scan(complete=complete)
            if piece is None:
                break
            self._begun = self._begun or bool(piece and not piece.isspace())
            if not self.calls:
                shown.append(piece)
        if not self._candidate:
            self._text, self._at = self._text[self._at :], 0
        return "".join(shown)

    def _to(self, end: int) -> str:
        """Go on to `end` and return what lies before it."""
        start, self._at = self._at, end
        self._last = self._text[end - 1 : end] or self._last
        return self._text[start:end]

    def _scan(self, *, complete: bool) -> str | None:
        """Return what comes before the next thing that may be a call."""
        text = self._text
        begun = len(text) if complete else self._begun_opener(self._at)
        bare = self._bare()
        openers = _OPENER.finditer(text, self._at, min(begun, bare))
        opener = next((each for each in openers if not self._is_quoted(each)), None)
        if opener is not None:
            return self._open(opener.start(), opener.end())
        if bare < begun:
            return self._open(bare, bare)
        end = len(text) if complete else self._before_break(begun)
        return self._to(end) if end > self._at else None

    def _pass_code(self, *, complete: bool) -> str | None:
        text = self._text
        fence = _FENCE_END.search(text, self._at)
        if fence is not None and (complete or fence.end() < len(text)):
            self._in_code = False
            return self._to(fence.end())
        end = len(text) if complete else len(text.rstrip("`"))
        return self._to(end) if end > self._at else None

    def _open(self, start: int, body: int) -> str:
        """Return what comes before `start`; hold what follows, with the blank in front."""
        kind = self._text[start] if body > start else ""
        self._candidate = _Candidate(kind=kind, body=body)
        self._candidate.form = self._function(start, body)
        return self._to(self._before_break(start))

    def _read(self, candidate: "_Candidate", *, complete: bool) -> str | None:
        """Find out whether what is held is a call: return what of it is none."""
        if candidate.form is None:
            return self._look_inside(candidate, complete=complete)
        form, text = candidate.form, self._text
        state = form.read(text)
        if state == "open" and not complete:
            return None
        is_named = state == "call" or (state == "open" and form.name)
        if is_named:
            self.calls.append(form.call(text))
        elif state == "none" or candidate.kind not in {"<", "["}:
            return self._release(candidate)
        # Else a call that was cut before its name.
        self._candidate = None
        self._to(form.end or len(text))
        return ""

    def _look_inside(self, candidate: "_Candidate", *, complete: bool) -> str | None:
        """Find the form of what the candidate holds; it may have another opener first."""
        text = self._text
        start = _after_blank(text, candidate.body)
        if (nested := _OPENER.match(text, start)) is not None:
            candidate.form = self._function(start, nested.end())
            candidate.body = nested.end()
        elif not complete and (start == len(text) or self._begun_opener(start) == start):
            return None
        elif text[start : start + 1] in {"{", "["}:
            candidate.form = JsonCall(self._names, start)
        else:
            return self._release(candidate)
        return ""

    def _release(self, candidate: "_Candidate") -> str:
        """Return the beginning of what is no call after all."""
        self._candidate = None
        self._in_code = candidate.kind == "`"
        bracket = 0 if candidate.kind else 1  # it would be taken for the same again
        return self._to(min(candidate.body + bracket, len(self._text)))

    def _function(self, start: int, body: int) -> FunctionCall | None:
        is_function = self._text[start:body].lower() == _FUNCTION
        return FunctionCall(self._names, body) if is_function else None

    def _is_quoted(self, opener: re.Match[str]) -> bool:
        start = opener.start()
        before = self._text[start - 1] if start else self._last
        return before == "`" and not opener[0].startswith("`")

    def _bare(self) -> int:
        """Return where an object stands that may be a call without any opener."""
        text = self._text
        if self.calls:
            found = text.find("{", self._at)
            return found if found >= 0 else len(text)
        start = len(text) if self._begun else _after_blank(text, self._at)
        return start if text[start : start + 1] in {"{", "["} else len(text)

    def _begun_opener(self, start: int) -> int:
        """Return where, from `start` on, an opener begins of which the rest may follow."""
        text = self._text
        start = max(start, len(text) - _LONGEST_BEGUN)
        if (fence := _FENCE_BEGUN.search(text, start)) is not None:
            return fence.start()
        at = max(text.rfind("<", start), text.rfind("[", start))
        tail = text[at:].lower() if at >= 0 else "-"
        begun = any(literal.startswith(tail) for literal in _LITERALS)
        return at if begun else len(text)

    def _before_break(self, at: int) -> int:
        """Return where the line breaks begin that end at `at`; at first, any blank."""
        start = at
        while start > self._at and self._text[start - 1].isspace():
            start -= 1
        if start == self._at and not self._begun:
            return start
        line_break = self._text.find("\n", start, at)
        return at if line_break < 0 else line_break


@dataclass(slots=True)
class _Candidate:
    """What may be a call: how it opens (`<`, `[`, a backtick, or not at all), and its form."""

    kind: str
    body: int
    form: JsonCall | FunctionCall | None = None


def _after_blank(text: str, start: int) -> int:
    blank = _BLANK.match(text, start)
    return blank.end() if blank else start
