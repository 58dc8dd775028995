"""`GET /health`: whether the service works, and which parts do not as they should."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from serving.http.state import Bot

HEALTH_SECONDS = 8.0

router = APIRouter(tags=["health"])


class Endpoint(BaseModel):
    """An endpoint of the model: `cooling` rests for so many seconds, `probing` is tried.

    `error` is why. `address` has no login and no query; it is null where a provider's package
    knows it.
    """

    name: str
    model: str
    address: str | None
    state: Literal["ready", "cooling", "probing"]
    seconds: float
    error: str | None
    calls: int
    failures: int


class Health(BaseModel):
    """`degraded` gives the reason for each part that does not work as it should."""

    status: Literal["ok", "degraded"]
    degraded: dict[str, str]
    model: str
    endpoints: list[Endpoint]
    version: str


@router.get("/api/metrics", response_class=PlainTextResponse)
async def metrics(bot: Bot) -> Response:
    """Tell the counts of this process in the text format of Prometheus."""
    return Response(bot.metrics(), media_type=CONTENT_TYPE_LATEST)


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
        endpoints=[Endpoint(**state) for state in bot.endpoints()],
        version=request.app.state.version,
    )
