"""What the wording of a message tells: whether it asks, points back, or means the chatbot."""

import re

from chatbot.courtesy import without_courtesy
from chatbot.terms import Term, terms
from chatbot.text import language

_SUBJECT = 0.5  # the weight of a word that can name what a question is about

_ASKS = re.compile(
    r"[?？]\s*$|[吗呢]\W*$"
    r"|什么|怎么|怎样|如何|多少|多[久长大深高远]|几|哪|谁|何时|为什么|为何|是否|能不能|可不可以|有没有"
    r"|^\W*(?:and |but |so )?(?:what|who|whom|whose|when|where|which|why|how|can|could|do|does"
    r"|did|is|are|was|were|will|would|should|may|must|has|have)\b",
    re.IGNORECASE,
)
_REFERS_ENGLISH = re.compile(
    r"\b(?:it|its|they|them|their|theirs|that|this|these|those|there|then|he|she|him|his|her"
    r"|hers|one|ones|else|instead|either|same|too|also)\b"
    r"|^\W*(?:and|but|or|so|what about|how about|what if|if)\b",
    re.IGNORECASE,
)
_REFERS_CHINESE = re.compile(
    r"[它她此]|(?<!其)他|这|那(?!么?多)|其(?!他|实|中|余)|该(?!怎|如|不)|呢\W*$|同样|一样"
    r"|^\W*(?:还有|还|如果|要是|万一|再|也|又|另外|除此)"
)
_ADDRESSES = re.compile(r"\b(?:you|your|yours|yourself)\b|[你您](?!们)", re.IGNORECASE)
# "Do you" and "your" may mean the company whose documents these are.
_MEANS_CHATBOT = re.compile(
    r"\b(?:who|what|how) are you\b|\bare you(?:\W*$| (?:an?|human|real|ok|okay|there)\b)"
    r"|\byour name\b|[你您](?!们)",
    re.IGNORECASE,
)


def asks(text: str) -> bool:
    """Return whether the text has the form of a question."""
    return bool(_ASKS.search(without_courtesy(text)))


def names_subject(text: str) -> bool:
    """Return whether the text has a word that can name what it is about."""
    return any(names(term) for term in terms(text))


def names(term: Term) -> bool:
    """Return whether a word says what a text is about, rather than holding it together."""
    return term.weight >= _SUBJECT


def refers(text: str) -> bool:
    """Return whether the text points back: by its words, or as a question without a subject."""
    pointing = _REFERS_CHINESE if language(text) == "zh" else _REFERS_ENGLISH
    return bool(pointing.search(without_courtesy(text))) or (
        asks(text) and not names_subject(text)
    )


def addresses(text: str) -> bool:
    """Return whether the text speaks to the one who answers."""
    return bool(_ADDRESSES.search(without_courtesy(text)))


def means_chatbot(text: str) -> bool:
    """Return whether the text is about the chatbot itself."""
    return bool(_MEANS_CHATBOT.search(without_courtesy(text)))
