"""Sentences, words and the language of a text, in Chinese, English and a mix of both."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from chatbot.stems import stem

Language = Literal["zh", "en"]

LONGEST_WORD = 64

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\uac00-\ud7af"  # Thai, Lao, kana, hangul

_SCRIPT = re.compile(
    rf"(?P<han>[{HAN}]+)"
    rf"|(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<latin>(?:(?![{HAN}{UNSPACED}])[^\W_])+(?:[-'’.](?:(?![{HAN}{UNSPACED}])[^\W_])+)*)"
)
_HAN = re.compile(f"[{HAN}]")
_ADDRESS = re.compile(
    r"(?<![a-z0-9])(?:"
    r"[a-z][a-z0-9+.-]*://[^\s\"'<>()（），。]+"  # with its protocol
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*\](?::\d+)?"  # IP
    r"|localhost(?::\d+)?\b|(?<=host=['\"])[^'\"]+"
    r"|(?<![\w.-])(?:[a-z0-9-]+\.)+[a-z]{2,}:\d{2,5}\b|(?<![\w.-])[a-z][a-z0-9-]*:\d{4,5}\b"
    r")",
    re.IGNORECASE,
)
_LATIN_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(
    r"[。！？…]+[”’」』）)\]】》]*"  # Chinese: no white space follows
    r"|[.!?]+[\"'”’)\]]*(?=\s|$)"
    r"|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|cf|ca|vs|etc|approx|no|nos|fig|vol|ch|pp|mr|mrs|ms|dr|st|jr|sr|prof|inc|ltd)\.$",
    re.IGNORECASE,
)


class Word(NamedTuple):
    """A word in the form it is compared in, and `surface`, the form it stands in.

    Chinese words carry the part of speech that the segmenter's dictionary gives, numbers and
    codes "num", words of other scripts "".
    """

    text: str
    tag: str
    surface: str


@cache
def segmenter() -> Any:  # noqa: ANN401 - a module without types
    """Return rjieba, whose dictionary takes about 0.2 s to read: a tenth of a start."""
    return import_module("rjieba")


def language(text: str) -> Language:
    """Return the language that most of the text's words are in."""
    sample = text[:4000]
    han = len(_HAN.findall(sample))
    latin = sum(1 for _ in _LATIN_WORD.finditer(_HAN.sub(" ", sample)))
    return "zh" if han > latin else "en"


def without_addresses(text: str) -> str:
    """Return the text with `[address]` where it tells where a service is."""
    return _ADDRESS.sub("[address]", text)


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


def words(text: str) -> Iterator[Word]:
    """Give the words of the text in order, without punctuation."""
    for match in _SCRIPT.finditer(unicodedata.normalize("NFC", text)):
        piece = match.group()
        if match.lastgroup == "han":
            for word, tag in segmenter().tag(_normalized(piece), False):  # noqa: FBT003 - no guesses
                yield Word(word, tag, word)
        elif match.lastgroup == "unspaced":
            for pair in _pairs(_normalized(piece)):
                yield Word(pair, "", pair)
        else:
            yield _latin(piece[:LONGEST_WORD])


@lru_cache(maxsize=50_000)
def subwords(word: str) -> tuple[str, ...]:
    """Return the shorter words inside a word, which make it findable by a part of it."""
    if _HAN.match(word):
        if len(word) == 1:
            return ()
        parts = {*segmenter().cut_for_search(word, False), *word}  # noqa: FBT003 - no guesses
        return tuple(sorted(parts - {word}))
    if "-" in word or "." in word:
        return tuple(stem(part) for part in re.split(r"[-.]", word) if part)
    return ()


def tokens(text: str) -> list[str]:
    """Return the words and subwords of the text, as they are indexed.

    Two Chinese characters that are words of their own and stand together count as a word too,
    because the dictionary does not know all there are.
    """
    found: list[str] = []
    before = ""
    for word in words(text):
        found += _expanded(word.text)
        single = word.text if is_character(word.text) else ""
        if before and single:
            found.append(before + single)
        before = single
    return found


@lru_cache(maxsize=50_000)
def _expanded(word: str) -> tuple[str, ...]:
    return (word, *subwords(word))


def is_character(word: str) -> bool:
    """Return whether the word is a single Chinese character."""
    return len(word) == 1 and bool(_HAN.match(word))


@lru_cache(maxsize=50_000)
def _normalized(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    if plain.isascii():
        return plain
    apart = unicodedata.normalize("NFD", plain)
    bare = re.sub("[\u0300-\u036f]", "", apart)
    return unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=50_000)
def _latin(surface: str) -> Word:
    piece = _normalized(surface).removesuffix("'s").replace("'", "")
    if any(character.isdigit() for character in piece):
        return Word(re.sub(r"(?<=[a-z])-(?=\d)", "", piece), "num", surface)
    return Word(piece if "-" in piece or "." in piece else stem(piece), "", surface)


def _pairs(piece: str) -> list[str]:
    return [piece[at : at + 2] for at in range(max(1, len(piece) - 1))]
