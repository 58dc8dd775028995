"""English words without their inflection."""

import re
from functools import lru_cache

_SHORTEST = 3
# Ending, what takes its place, and how long the rest of the word must be at least.
_ENDINGS = (
    *((ending, "", 4) for ending in ("ations", "ation", "ating", "ated", "ates", "ate")),
    *((ending, "", 4) for ending in ("ances", "ance", "ages", "age")),
    *((ending, "", 5) for ending in ("ions", "ion")),
    ("ically", "ic", 3),
    *((ending, "", 3) for ending in ("ments", "ment", "ness", "ings", "ing", "edly", "ed")),
    *(("ies", "y", 3), ("ied", "y", 3), ("sses", "ss", 3), ("xes", "x", 2), ("uses", "us", 2)),
    *(("es", "e", 3), ("ers", "er", 3), ("ly", "", 3)),
)
_SHORT_SYLLABLE = re.compile("[b-df-hj-np-tv-z][aeiou][b-df-hj-np-tvz]")
_DROPPED_E = frozenset({"ing", "ings", "ed"})
_IRREGULAR = {
    form: plain
    for plain, forms in {
        "begin": "began begun",
        "break": "broke broken",
        "bring": "brought",
        "build": "built",
        "buy": "bought",
        "catch": "caught",
        "child": "children",
        "choose": "chose chosen",
        "deep": "depth",
        "draw": "drew drawn",
        "drive": "drove driven",
        "eat": "ate eaten",
        "fall": "fell fallen",
        "feed": "fed",
        "find": "found",
        "fly": "flew flown flight flights",
        "foot": "feet",
        "forget": "forgot forgotten",
        "freeze": "froze frozen",
        "give": "gave given",
        "go": "went gone",
        "grow": "grew grown growth",
        "high": "height",
        "hold": "held",
        "keep": "kept",
        "know": "knew known",
        "lead": "led",
        "leave": "left",
        "live": "life lives living",
        "long": "length",
        "lose": "lost loss",
        "make": "made",
        "man": "men",
        "meet": "met",
        "pay": "paid",
        "rise": "rose risen",
        "say": "said",
        "see": "saw seen",
        "sell": "sold",
        "send": "sent",
        "speak": "spoke spoken",
        "spend": "spent",
        "stand": "stood",
        "steal": "stole stolen",
        "take": "took taken",
        "taxi": "taxis",
        "teach": "taught",
        "tell": "told",
        "think": "thought",
        "use": "used uses using",
        "wear": "wore worn",
        "weigh": "weight weights",
        "wide": "width",
        "win": "won",
        "write": "wrote written",
    }.items()
    for form in forms.split()
}


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return what the forms of an English word have in common, so they are found together."""
    word = _IRREGULAR.get(word, word)
    if not word.isascii() or not word.isalpha() or len(word) <= _SHORTEST:
        return word
    word, ending = _without_ending(word)
    if word[-1] == word[-2] and word[-1] not in "aeioulsz" and len(word) > _SHORTEST:
        word = word[:-1]
    elif ending in _DROPPED_E and _SHORT_SYLLABLE.fullmatch(word):
        word += "e"
    if word.endswith("e") and len(word) > _SHORTEST + 1:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > _SHORTEST else word


def _without_ending(word: str) -> tuple[str, str]:
    for ending, replacement, shortest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= shortest:
            return word.removesuffix(ending) + replacement, ending
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1], "s"
    return word, ""
