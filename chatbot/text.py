"""Sentences, words and the language of a text, in Chinese, English and a mix of both."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

import rjieba

Language = Literal["zh", "en"]

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\uac00-\ud7af"  # Thai, Lao, kana, hangul

_SCRIPT = re.compile(
    rf"(?P<han>[{HAN}]+)"
    rf"|(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<latin>(?:(?![{HAN}{UNSPACED}])[^\W_])+(?:[-'.](?:(?![{HAN}{UNSPACED}])[^\W_])+)*)"
)
_HAN = re.compile(f"[{HAN}]")
_LATIN_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(
    r"[。！？；…]+[”’」』）)\]】》]*"  # Chinese: no white space follows
    r"|[.!?]+[\"'”’)\]]*(?=\s|$)"
    r"|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|cf|ca|vs|etc|approx|no|nos|fig|vol|ch|pp|mr|mrs|ms|dr|st|jr|sr|prof|inc|ltd)\.$",
    re.IGNORECASE,
)
_LONG_SUFFIXES = ("ations", "ation", "ating", "ated", "ates", "ate")
_SUFFIXES = (
    ("ically", "ic"),
    ("ments", ""),
    ("ment", ""),
    ("ness", ""),
    ("ings", ""),
    ("ing", ""),
    ("ies", "y"),
    ("ied", "y"),
    ("edly", ""),
    ("ed", ""),
    ("sses", "ss"),
    ("es", "e"),
    ("ers", "er"),
    ("ly", ""),
)
_SHORTEST_STEM = 3


def language(text: str) -> Language:
    """Return the language that most of the text's words are in."""
    sample = text[:4000]
    han = len(_HAN.findall(sample))
    latin = sum(1 for _ in _LATIN_WORD.finditer(_HAN.sub(" ", sample)))
    return "zh" if han > latin else "en"


def sentences(text: str) -> list[str]:
    """Cut the text after each sentence. Line breaks end a sentence too."""
    found = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end.group().startswith(".") and _ABBREVIATION.search(
            text, max(start, end.start() - 8), end.start() + 1
        ):
            continue
        found.append(text[start : end.end()])
        start = end.end()
    found.append(text[start:])
    return [sentence for part in found if (sentence := part.strip())]


def words(text: str) -> Iterator[tuple[str, str]]:
    """Give each word in the form it is compared in, and its part of speech.

    Chinese words carry the tag of the segmenter's dictionary, numbers and codes "num", words of
    other scripts "". Punctuation is left out.
    """
    for match in _SCRIPT.finditer(_normalized(text)):
        piece = match.group()
        if match.lastgroup == "han":
            yield from rjieba.tag(piece, False)  # noqa: FBT003 - no guessed words
        elif match.lastgroup == "unspaced":
            for pair in _pairs(piece):
                yield pair, ""
        else:
            yield _latin(piece)


def subwords(word: str) -> list[str]:
    """Return the shorter words inside a word, which make it findable by a part of it."""
    if _HAN.match(word):
        parts = {*rjieba.cut_for_search(word, False)}  # noqa: FBT003 - no guessed words
        parts.update(word if len(word) > 1 else ())
        return sorted(parts - {word})
    if "-" in word or "." in word:
        return [stem(part) for part in re.split(r"[-.]", word) if part]
    return []


def tokens(text: str) -> list[str]:
    """Return the words and subwords of the text, as they are indexed."""
    found = []
    for word, _ in words(text):
        found.append(word)
        found.extend(subwords(word))
    return found


def stem(word: str) -> str:
    """Return an English word without its inflection, so that its forms are found together."""
    if not word.isascii() or not word.isalpha() or len(word) <= _SHORTEST_STEM:
        return word
    for suffix in _LONG_SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) > _SHORTEST_STEM:
            return word.removesuffix(suffix)
    for suffix, replacement in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            word = word.removesuffix(suffix) + replacement
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        word = word[:-1]
    if len(word) > _SHORTEST_STEM and word.endswith(("e", "i", "y")):
        word = word[:-1]
    return word


def _normalized(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    if plain.isascii():
        return plain
    apart = unicodedata.normalize("NFD", plain)
    bare = re.sub("[\u0300-\u036f]", "", apart)
    return unicodedata.normalize("NFC", bare)


def _latin(piece: str) -> tuple[str, str]:
    piece = piece.removesuffix("'s").replace("'", "")
    if any(character.isdigit() for character in piece):
        return re.sub(r"(?<=[a-z])-(?=\d)", "", piece), "num"
    return (piece if "-" in piece or "." in piece else stem(piece)), ""


def _pairs(piece: str) -> list[str]:
    return [piece[at : at + 2] for at in range(max(1, len(piece) - 1))]
