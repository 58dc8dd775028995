"""`/health`: whether the service lives, is ready, and which parts do not as they should."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from chatbot.errors import UnavailableError
from serving.auth import SignInError
from serving.http.state import Bot
from serving.http.users import Operator, caller_of

HEALTH_SECONDS = 8.0

router = APIRouter(tags=["health"])


class NotReadyError(UnavailableError):
    """No question can be answered for now."""

    code = "not_ready"


class Life(BaseModel):
    """What everybody may know."""

    status: Literal["ok", "degraded"]


class Endpoint(BaseModel):
    """An endpoint of the model: `cooling` rests for so many seconds, `probing` is tried.

    `error` is why. `address` has no login and no query; it is null where a provider's package
    knows it, and for those who do not run the chatbot.
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
async def metrics(bot: Bot, operator: Operator) -> Response:
    """Tell an operator the counts of all workers in the text format of Prometheus."""
    del operator
    counts = await asyncio.to_thread(bot.metrics)
    return Response(counts, media_type=CONTENT_TYPE_LATEST)


@router.get("/health/live")
async def live() -> Life:
    """Tell that the process is alive; nothing is asked of anybody."""
    return Life(status="ok")


@router.get("/health/ready")
async def ready(bot: Bot) -> Life:
    """Tell whether questions can be answered; memory and knowledge can do without."""
    endpoints = bot.endpoints()
    if endpoints and all(each["state"] == "cooling" for each in endpoints):
        message = "Every endpoint of the model has failed lately and rests."
        seconds = min(each["seconds"] for each in endpoints)
        raise NotReadyError(message, retry_after=seconds)
    return Life(status="ok")


@router.get("/health")
async def health(request: Request, bot: Bot) -> Health | Life:
    """Tell the state of the service, and its parts to those who may know them."""
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            degraded = await bot.health()
    except TimeoutError:
        degraded = {"service": f"A check did not end within {HEALTH_SECONDS:g} s."}
    status: Literal["ok", "degraded"] = "degraded" if degraded else "ok"
    try:
        caller = await caller_of(request)
    except SignInError:
        return Life(status=status)
    hidden = {} if caller.operator else {"address": None}
    return Health(
        status=status,
        degraded=degraded,
        model=bot.model_name,
        endpoints=[Endpoint(**{**state, **hidden}) for state in bot.endpoints()],
        version=request.app.state.version,
    )
