"""Questions to begin with, made from what the assistants say they know."""

import asyncio
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Literal

from pydantic import BaseModel

from chatbot.domain import Assistant
from chatbot.errors import KnowledgeBaseError
from chatbot.queries import is_chinese
from graphs import Chatbot

Language = Literal["en", "zh"]

SUGGESTED = 4
ASSISTANTS_ASKED = 4
SUBJECTS_TRIED = 3
LONGEST_SUBJECT = 30
SEARCH_SECONDS = 4.0
KEPT_SECONDS = 600.0
MOST_KEPT = 200
ABOUT_SUBJECT: Mapping[Language, str] = {
    "en": "What should I know about {subject}?",
    "zh": "关于{subject}，有哪些内容？",
}
ABOUT_ASSISTANT: Mapping[Language, str] = {
    "en": "What can I look up in “{subject}”?",
    "zh": "在“{subject}”里可以查到什么？",
}
_PHRASE = re.compile(r"([^,，、;；:：.。!！?？()（）]+)([,，、;；:：.。!！?？()（）]|$)")


class Suggestion(BaseModel):
    """A question to begin with, and the assistant that knows about it."""

    question: str
    assistant: str


class SuggestedQuestions:
    """Finds the suggestions of each language and choice of assistants, and keeps them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Language, tuple[Assistant, ...]], _Kept] = {}

    async def of(
        self, bot: Chatbot, language: Language, *, permitted: Collection[str] | None = None
    ) -> Sequence[Suggestion]:
        """Return the suggestions in the language; none while the assistants are not known."""
        try:
            known = (await bot.assistants(permitted=permitted))[:ASSISTANTS_ASKED]
        except KnowledgeBaseError:
            return []
        about = (language, tuple(known))
        kept = self._kept.get(about)
        if kept and time.monotonic() < kept.until:
            return kept.suggestions
        found = await asyncio.gather(*(_subjects(bot, each, language) for each in known))
        # The first subject of each assistant, then the second of each, and so on.
        in_turn = chain.from_iterable(zip_longest(*found))
        suggestions = [each for each in in_turn if each is not None][:SUGGESTED]
        until = time.monotonic() + KEPT_SECONDS
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[about] = _Kept(suggestions=suggestions, until=until)
        return suggestions


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    suggestions: Sequence[Suggestion]
    until: float


async def _subjects(
    bot: Chatbot, assistant: Assistant, language: Language
) -> Sequence[Suggestion]:
    """Return a question for each subject that something is found about."""
    tried = list(_phrases(assistant.description, language))[:SUBJECTS_TRIED]
    found = await asyncio.gather(*(_is_known(bot, assistant, each) for each in tried))
    questions = [
        ABOUT_SUBJECT[language].format(subject=subject)
        for subject, known in zip(tried, found, strict=True)
        if known
    ] or [ABOUT_ASSISTANT[language].format(subject=assistant.name)]
    return [Suggestion(question=each, assistant=assistant.name) for each in questions]


async def _is_known(bot: Chatbot, assistant: Assistant, subject: str) -> bool:
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            found = await bot.search(subject, assistants=[assistant], limit=1)
    except (KnowledgeBaseError, TimeoutError):
        return False
    return bool(found.passages)


def _phrases(description: str, language: Language) -> Iterator[str]:
    """Yield the short phrases of a description that are written in the language.

    What stands before a colon is a title of the rest, not a subject.
    """
    for phrase, mark in _PHRASE.findall(description):
        subject = " ".join(phrase.split())
        short = 1 < len(subject) <= LONGEST_SUBJECT and mark not in {":", "："}
        if short and is_chinese(subject) == (language == "zh"):
            yield subject
