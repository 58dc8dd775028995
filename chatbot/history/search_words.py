"""The words by which turns are found, Chinese ones cut from their sentences."""

import chatbot.text
from chatbot.domain import Turn

LIMIT = 600  # words of one turn that can be found


def indexed(turn: Turn) -> list[str]:
    """Return the words of the turn's question and answer, and the words inside them."""
    found = chatbot.text.tokens(f"{turn.question}\n{turn.answer}")
    return list(dict.fromkeys(found))[:LIMIT]


def wanted(text: str) -> list[str]:
    """Return the words that a turn must have to be found."""
    return list(dict.fromkeys(word.text for word in chatbot.text.words(text)))
