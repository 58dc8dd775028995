"""Judges whether a rewritten question may take the place of what the user wrote."""

import re
import unicodedata

LONGEST_FACTOR = 4
LONGEST_EXTRA = 120
KEPT_SHARE = 0.3  # of the question's words, in a query that still says the same
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]+\b", re.ASCII)


def usable_rewrite(question: str, rewrite: str) -> str:
    """Return the rewrite, cleaned, or "" if it may not stand for the question.

    Refused are: nothing, many lines, far longer text, another script than the question's, and
    text that lost one of the question's numbers or codes.
    """
    cleaned = _cleaned(rewrite)
    if not any(character.isalnum() for character in cleaned):
        return ""
    if len(cleaned) > LONGEST_FACTOR * len(question) + LONGEST_EXTRA:
        return ""
    if has_language(question) and is_chinese(question) != is_chinese(cleaned):
        return ""
    facts = {*_NUMBER.findall(question), *(c.lower() for c in _CODE.findall(question))}
    if any(fact not in cleaned.lower() for fact in facts):
        return ""
    return cleaned


def differ_much(query: str, question: str) -> bool:
    """Return whether the query says something else than the question it was made from.

    Then both are worth a search. A query that goes on from the question's own words does not
    differ much, however much was added.
    """
    asked = _pieces(question)
    return bool(asked) and len(asked & _pieces(query)) < KEPT_SHARE * len(asked)


def is_chinese(text: str) -> bool:
    """Return whether the text is Chinese: Han characters weigh as much as Latin words.

    A Chinese question may name products and codes in Latin letters, an English one may quote a
    Chinese title: whichever has more units (one character, or one word) decides.
    """
    han, words = _units(text)
    return han > 0 and han >= words


def has_language(text: str) -> bool:
    """Return whether the text is more than a name or a code such as "E21?"."""
    han, words = _units(text)
    return han > 0 or words > 1


def _pieces(text: str) -> set[str]:
    """Return the words of the text, and its pairs of Chinese characters."""
    pieces: set[str] = set()
    for run in re.findall(r"[\u4e00-\u9fff]+|[^\W\u4e00-\u9fff]+", text.casefold()):
        if "\u4e00" <= run[0] <= "\u9fff" and len(run) > 1:
            pieces |= {run[at : at + 2] for at in range(len(run) - 1)}
        else:
            pieces.add(run)
    return pieces


def _units(text: str) -> tuple[int, int]:
    han = sum("\u4e00" <= character <= "\u9fff" for character in text)
    words = re.findall(r"[^\W\d_]+", _CODE.sub(" ", text))
    return han, sum(not "\u4e00" <= word[0] <= "\u9fff" for word in words)


def _cleaned(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) != 1:
        return ""
    line = "".join(c for c in lines[0] if unicodedata.category(c) != "Cc")
    return line.strip("\"'“”‘’「」`").strip()
