"""`GET /health`: whether the service works, and which parts do not as they should."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from serving.http.state import Bot

HEALTH_SECONDS = 8.0

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """`degraded` gives the reason for each part that does not work as it should."""

    status: Literal["ok", "degraded"]
    degraded: dict[str, str]
    model: str
    version: str


@router.get("/health")
async def health(request: Request, bot: Bot) -> Health:
    """Tell the state of the service; answering at all means that it is alive."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            degraded = await bot.health()
    except TimeoutError:
        degraded = {"service": f"A check did not end within {HEALTH_SECONDS:g} s."}
    return Health(
        status="degraded" if degraded else "ok",
        degraded=degraded,
        model=bot.model_name,
        version=request.app.state.version,
    )
