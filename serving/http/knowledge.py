"""What can be asked: the assistants, and questions to begin with."""

import asyncio

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel

from serving.http.state import Bot, Suggestions
from serving.http.suggestions import Language, Suggestion

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
async def list_assistants(bot: Bot) -> AssistantList:
    """List the assistants."""
    items = [
        AssistantItem(id=each.id, name=each.name, description=each.description)
        for each in await bot.assistants()
    ]
    return AssistantList(assistants=items)


@router.get("/images/{name}", response_class=FileResponse)
async def image(name: str, bot: Bot) -> Response:
    """Give an image that a model made."""
    path = bot.image(name)
    if path is None or not await asyncio.to_thread(path.is_file):
        raise HTTPException(404)
    return FileResponse(path, headers={"Cache-Control": "private, max-age=31536000, immutable"})


@router.get("/suggestions")
async def suggest(bot: Bot, kept: Suggestions, language: Language = "en") -> SuggestionList:
    """Suggest questions in the language, as far as there are documents in it."""
    return SuggestionList(suggestions=list(await kept.of(bot, language)))
