"""What can be asked: the assistants, and questions to begin with."""

from fastapi import APIRouter
from pydantic import BaseModel

from serving.http.state import Bot, Suggestions
from serving.http.suggestions import Language, Suggestion
from serving.http.users import Caller

router = APIRouter(prefix="/api", tags=["knowledge"])


class AssistantItem(BaseModel):
    """A part of the knowledge with a name, and what it knows."""

    id: str
    name: str
    description: str


class AssistantList(BaseModel):
    """All that can be asked."""

    assistants: list[AssistantItem]


class SuggestionList(BaseModel):
    """Questions for an empty page."""

    suggestions: list[Suggestion]


@router.get("/assistants")
async def list_assistants(bot: Bot, caller: Caller) -> AssistantList:
    """List the assistants that may be asked."""
    items = [
        AssistantItem(id=each.id, name=each.name, description=each.description)
        for each in await bot.assistants(permitted=caller.assistants)
    ]
    return AssistantList(assistants=items)


@router.get("/suggestions")
async def suggest(
    bot: Bot, kept: Suggestions, caller: Caller, language: Language = "en"
) -> SuggestionList:
    """Suggest questions in the language, as far as there are documents in it."""
    found = await kept.of(bot, language, permitted=caller.assistants)
    return SuggestionList(suggestions=list(found))
