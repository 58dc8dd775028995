"""Tells an assistant's fixed words for nothing found from an answer."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from html import escape

from chatbot.domain import AnswerPiece


async def without(
    words: str, pieces: AsyncGenerator[AnswerPiece, None]
) -> AsyncGenerator[AnswerPiece, None]:
    """Yield the pieces, without the text of an answer that consists of nothing but `words`.

    The beginning is held back as long as it may become `words`, which RAGFlow writes as HTML.
    """
    forms = {words, escape(words)} if words else set()
    held = ""
    async with aclosing(pieces) as stream:
        async for piece in stream:
            if piece.text and forms:
                held = piece.text if piece.replaces else held + piece.text
                if any(form.startswith(held.strip()) for form in forms):
                    continue
                forms = set()
                yield replace(piece, text=held)
            else:
                yield piece
    if forms and held.strip() not in forms | {""}:
        yield AnswerPiece(text=held)
