"""Judges whether a rewritten question may take the place of what the user wrote."""

import re
import unicodedata
from collections.abc import Iterator

LONGEST_FACTOR = 4
LONGEST_EXTRA = 120
KEPT_SHARE = 0.3  # of the question's words, in a query that still says the same
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_HAN_NUMBER = re.compile(  # one that counts something, not 一 alone, which says little
    r"(?:(?<=第)[一二两三四五六七八九十]{1,3}|(?!一(?![二三四五六七八九十]))[一二两三四五六七八九十]{1,3})"
    r"(?=个?[天日月年周岁元块次章节页条款项人级倍米]|个?小时|个?星期|公里|号)"
)
_HAN_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2}
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]+\b", re.ASCII)
_TITLE = re.compile(r"《([^《》]+)》|「([^「」]{1,30})」|“([^“”]{1,30})”|\"([^\"]{1,30})\"")
_LETTERED = re.compile(r"[^\W\d_\u3040-\uffff](?:[^\W\u3040-\uffff]|['’-])*")
_SENTENCE_END = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；", "\n")
# Words and characters that only hold a sentence together: alone they say nothing.
_FUNCTION_WORD = re.compile(
    "a|about|again|also|am|an|and|any|are|as|at|be|been|but|by|can|could|did|do|does|else|for|"
    "from|had|has|have|he|her|him|his|how|i|if|in|into|is|it|its|me|more|my|no|not|of|ok|okay|on|"
    "one|or|our|out|please|she|should|so|some|tell|than|thanks|that|the|their|them|then|there|"
    "these|they|this|those|to|too|up|us|was|we|were|what|when|where|which|who|whom|whose|why|"
    "will|with|would|yes|you|your|[的了是在有和吗呢么什怎样那它这我你您他她们请问个几哪谁为何就都也还再吧啊呀]+"
)


def usable_rewrite(question: str, rewrite: str) -> str:
    """Return the rewrite, cleaned, or "" if it may not stand for the question.

    Refused are: nothing, many lines, far longer text, another script than the question's, and
    text that lost one of the question's numbers, codes, titles or names.
    """
    cleaned = _cleaned(rewrite)
    if not any(character.isalnum() for character in cleaned):
        return ""
    if len(cleaned) > LONGEST_FACTOR * len(question) + LONGEST_EXTRA:
        return ""
    if has_language(question) and is_chinese(question) != is_chinese(cleaned):
        return ""
    asked, kept = _folded(question), _folded(cleaned)
    facts = {*_NUMBER.findall(asked), *_CODE.findall(asked), *map(_folded, _names(question))}
    return cleaned if all(fact in kept for fact in facts) else ""


def differ_much(query: str, question: str) -> bool:
    """Return whether the query says something else than the question it was made from.

    Then both are worth a search. A query that goes on from the question's own words does not
    differ much, however much was added; one that says nothing by itself is not worth it.
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
    """Return what the text says: its words, and its pairs of Chinese characters."""
    pieces: set[str] = set()
    for run in re.findall(r"[\u4e00-\u9fff]+|[^\W\u4e00-\u9fff]+", text.casefold()):
        if "\u4e00" <= run[0] <= "\u9fff" and len(run) > 1:
            pieces |= {run[at : at + 2] for at in range(len(run) - 1)}
        else:
            pieces.add(run)
    return {piece for piece in pieces if _FUNCTION_WORD.fullmatch(piece) is None}


def _names(text: str) -> Iterator[str]:
    """Yield titles in their marks, and words that a capital letter shows to be names.

    Where most words begin with one, as in a heading, it shows nothing.
    """
    for title in _TITLE.finditer(text):
        yield next(filter(None, title.groups()))
    inside: list[str] = []
    begins: list[str] = []
    for word in _LETTERED.finditer(text):
        before = text[: word.start()].rstrip(" \t\"'“‘(（")
        begun = not before or before.endswith(_SENTENCE_END)
        (begins if begun else inside).append(re.sub(r"['’]\w*\Z", "", word[0]))
    capital = [word for word in inside if word[0].isupper()]
    if is_chinese(text) or len(capital) <= len(inside) / 2:
        yield from (word for word in capital if word != "I")
        yield from (word for word in begins if len(word) > 1 and word.isupper())


def _folded(text: str) -> str:
    """Return the text without what writes the same thing in other ways."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = _HAN_NUMBER.sub(lambda match: str(_counted(match[0])), plain)
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\b[a-z])-(?=\d)", "", plain)


def _counted(number: str) -> int:
    """Return the value of a Chinese number below a hundred."""
    tens, ten, ones = number.rpartition("十")
    if not ten:
        return int("".join(str(_HAN_DIGITS[sign]) for sign in number))
    return 10 * _HAN_DIGITS.get(tens, 1) + _HAN_DIGITS.get(ones, 0)


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
