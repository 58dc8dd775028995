"""What can be asked: the assistants, and questions to begin with."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from chatbot.domain import Assistant
from serving.http.state import Bot

SUGGESTED = 4
QUESTIONS = {"en": "What can I look up in “{name}”?", "zh": "“{name}”里可以查到什么？"}

router = APIRouter(prefix="/api", tags=["knowledge"])


class AssistantItem(BaseModel):
    """A part of the knowledge with a name, and what it knows."""

    id: str
    name: str
    description: str


class AssistantList(BaseModel):
    """All that can be asked."""

    assistants: list[AssistantItem]


class Suggestion(BaseModel):
    """A question to begin with, and the assistant that knows about it."""

    question: str
    assistant: str


class SuggestionList(BaseModel):
    """Questions for an empty page."""

    suggestions: list[Suggestion]


@router.get("/assistants")
async def list_assistants(bot: Bot) -> AssistantList:
    """List the assistants."""
    items = [
        AssistantItem(id=each.id, name=each.name, description=each.description)
        for each in await bot.assistants()
    ]
    return AssistantList(assistants=items)


@router.get("/suggestions")
async def suggest(bot: Bot, language: Literal["en", "zh"] = "en") -> SuggestionList:
    """Suggest questions in the language."""
    known = await bot.assistants()
    return SuggestionList(suggestions=[_question(each, language) for each in known[:SUGGESTED]])


def _question(assistant: Assistant, language: str) -> Suggestion:
    question = QUESTIONS[language].format(name=assistant.name)
    return Suggestion(question=question, assistant=assistant.name)
