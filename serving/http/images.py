"""`/api/images`: what a question may have, and the images of the user's conversations."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from chatbot.images.image import KINDS
from serving.http.state import Bot
from serving.http.users import CurrentUser

router = APIRouter(prefix="/api/images", tags=["images"])


class ImageLimits(BaseModel):
    """What a question may have. Nothing where no model that is set reads images."""

    accepted: bool
    most: int
    bytes: int
    kinds: list[str]


@router.get("")
async def read_limits(bot: Bot) -> ImageLimits:
    """Tell which images a question may have."""
    policy = bot.image_policy
    accepted = bot.sees_images and policy.most > 0
    return ImageLimits(
        accepted=accepted, most=policy.most, bytes=policy.longest, kinds=list(KINDS)
    )


@router.get(
    "/{name}",
    response_class=Response,
    responses={200: {"content": {kind: {} for kind in KINDS}}},
)
async def read_image(name: str, request: Request, bot: Bot, user_id: CurrentUser) -> Response:
    """Give an image of one of the user's conversations, while that is kept."""
    found = await bot.image(name, user_id=user_id)
    if found is None:
        raise HTTPException(404)
    # A browser asks each time: the image may be gone, or somebody else signed in.
    headers = {"ETag": f'"{found.name}"', "Cache-Control": "private, no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(found.data, media_type=found.kind, headers=headers)
