"""Whether an answer says that there is none, by its words in English and Chinese."""

import re

from chatbot.text import sentences

_SOURCES = "(?:passage|document|source|text|material|handbook|manual|knowledge base)s?"
_NOT = r"(?:\bnot|n['’]t) (?:\w+ ){0,2}?"
_SAY = r"(?:mention|say|stated?\b|specif|address|answer|f[io]u?nd|tell|indicat|describ|covered)"
_HOLD = "(?:contain|cover|includ|give|provid)"
_LACKS = "[没未无][^，。；]{0,8}"
_WRITTEN = "提到|提及|说明|找到|查到|涉及|规定|写明|写到|给出|记载|介绍|描述"
_KNOWN = "明确|信息|答案|相关内容"
_WAYS = (
    r"\bno (?:\w+ )?(?:answer|information|mention|details?)\b",
    r"\bnothing (?:\w+ )?(?:about|on|regarding)\b",
    _NOT + _SAY,
    rf"\b{_SOURCES}\b[^.]*{_NOT}{_HOLD}",  # other things, too, cover or include
    r"\b(?:cannot|unable to) (?:\w+ ){0,2}?(?:answer|determine)",
    f"{_LACKS}(?:{_WRITTEN}|{_KNOWN})",
    "无法[^，。；]{0,6}(?:回答|确定|得知|判断|查到)",
    "不(?:清楚|知道)|[查找]不到",
)
_REFUSES = re.compile("|".join(_WAYS), re.IGNORECASE)
_SORRY = re.compile(r"^.{0,12}(?:\bsorry|unfortunately|抱歉|对不起|遗憾)\W*$", re.IGNORECASE)


def refuses(text: str) -> bool:
    """Return whether the text begins with that there is no answer.

    What comes later may be about a part of the question only.
    """
    said = (sentence for sentence in sentences(text) if not _SORRY.search(sentence))
    return bool(_REFUSES.search(next(said, "")))
