"""Tells a model's reasoning from its answer when both come as one text."""

import re

LONGEST_TAG = 200
_TAG = re.compile(r"<(/?)think(?:ing)?(?:\s[^<>]*?)?(/?)>", re.IGNORECASE)
_TAG_START = re.compile(
    r"<(?:/?(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?|"
    r"/?think(?:ing)?(?:\s[^<>]*|/))$",
    re.IGNORECASE,
)


class ThinkTags:
    """Splits text at `<think>` and `</think>`, in whatever pieces it comes.

    An opening tag counts anywhere but directly after a backtick, where it is quoted. A closing
    tag that nothing opened is removed: `stray` counts them. `opened` is for endpoints whose
    prompt template holds the opening tag, so that only the closing one is sent.
    """

    def __init__(self, *, opened: bool = False) -> None:
        self._inside = opened
        self._held = ""
        self._before = ""  # the last character of the answer so far
        self._trim = opened
        self.stray = 0
        self.seen = False  # whether there was any tag

    def feed(self, text: str) -> tuple[str, str]:
        """Return the parts of `text` that are answer and reasoning, as far as that is known."""
        if "<" not in text and not self._held and not self._trim:
            if self._inside:
                return "", text
            self._before = text[-1:] or self._before
            return text, ""
        text, self._held = self._held + text, ""
        start = _TAG_START.search(text, max(0, len(text) - LONGEST_TAG))
        if start is not None:
            text, self._held = text[: start.start()], text[start.start() :]
        return self._split(text)

    def end(self) -> tuple[str, str]:
        """Return what was held back because it looked like the beginning of a tag."""
        text, self._held = self._held, ""
        return self._split(text)

    def _split(self, text: str) -> tuple[str, str]:
        answer: list[str] = []
        reasoning: list[str] = []
        position = 0
        for tag in _TAG.finditer(text):
            self._append(text[position : tag.start()], answer, reasoning)
            position = tag.end()
            closing = bool(tag[1])
            self.seen = True
            if self._before == "`" and not self._inside:
                self._append(tag[0], answer, reasoning)
            elif tag[2] and not closing:
                self._trim = True  # an element without content
            elif closing is self._inside:
                self._inside = not closing
                self._trim = True
            elif closing:
                self.stray += 1
        self._append(text[position:], answer, reasoning)
        return "".join(answer), "".join(reasoning)

    def _append(self, text: str, answer: list[str], reasoning: list[str]) -> None:
        if self._trim:  # the line breaks that templates put around the tags
            text = text.lstrip()
            self._trim = not text
        if not text:
            return
        if self._inside:
            reasoning.append(text)
        else:
            answer.append(text)
            self._before = text[-1]
