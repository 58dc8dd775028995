"""The words by which turns are found, Chinese ones cut from their sentences."""

from functools import lru_cache

import chatbot.text
from chatbot.domain import Turn

LIMIT = 600  # words of one turn that can be found


def indexed(turn: Turn) -> list[str]:
    """Return the words of the turn's question and answer, and the words inside them."""
    return list(_tokens(f"{turn.question}\n{turn.answer}"))


def wanted(text: str) -> list[str]:
    """Return the words that a turn must have to be found."""
    return list(dict.fromkeys(word.text for word in chatbot.text.words(text)))


@lru_cache(maxsize=64)  # the local store and MongoDB want them one after the other
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chatbot.text.tokens(text)))[:LIMIT]
