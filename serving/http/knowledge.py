"""What can be asked: the assistants."""

from fastapi import APIRouter
from pydantic import BaseModel

from serving.http.state import Bot

router = APIRouter(prefix="/api", tags=["knowledge"])


class AssistantItem(BaseModel):
    """A part of the knowledge with a name, and what it knows."""

    id: str
    name: str
    description: str


class AssistantList(BaseModel):
    """All that can be asked."""

    assistants: list[AssistantItem]


@router.get("/assistants")
async def list_assistants(bot: Bot) -> AssistantList:
    """List the assistants."""
    items = [
        AssistantItem(id=each.id, name=each.name, description=each.description)
        for each in await bot.assistants()
    ]
    return AssistantList(assistants=items)
