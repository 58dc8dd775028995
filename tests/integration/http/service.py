"""Our routes over ports in memory and a scripted model, on a real server."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request

from chatbot.domain import Assistant, Passage
from chatbot.images.policy import ImagePolicy
from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.http import create_app
from tests.integration.http.ports import (
    InMemoryChatHistory,
    InMemoryKnowledgeBase,
    ScriptedModel,
    scripted,
)
from tests.integration.http.running_app import running_app

HANDBOOK = Assistant(id="a1", name="Handbook", description="Leave, pay and benefits.")
LONGEST_IMAGE, MOST_IMAGES = 2_000_000, 2
PASSAGE = Passage(
    id="p1",
    text="Everybody has 25 days of leave a year. 每年有二十五天年假。",
    document="leave.md",
    document_id="d1",
    assistant="Handbook",
    score=0.87,
    location="Leave > Annual leave",
)


@dataclass(frozen=True, kw_only=True)
class Service:
    """The running app, and what is behind it."""

    url: str
    client: httpx.Client
    history: InMemoryChatHistory
    knowledge: InMemoryKnowledgeBase
    model: ScriptedModel

    def ask(self, question: str, **choices: object) -> list[dict[str, Any]]:
        """Ask and return the events."""
        body = {"question": question, **choices}
        response = self.client.post("/api/chat", json=body)
        assert response.status_code == 200, response.text
        return events_of(response.text)


def events_of(text: str) -> list[dict[str, Any]]:
    frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
    lines = [frame.split("\n") for frame in frames]
    assert all(id_.startswith("id: ") and data.startswith("data: ") for id_, data in lines)
    return [json.loads(data.removeprefix("data: ")) for _, data in lines]


async def quotes(question: str) -> AsyncIterator[str]:
    """Answer with a statement and its citation, or with a greeting."""
    pieces = ["Hello", "!"] if "hello" in question else ["25 days", " of leave", " [1]."]
    for piece in pieces:
        yield piece


@pytest.fixture(name="service")
def fresh_service(running_service: Service) -> Service:
    """The service as it is after its start; it goes on running from test to test."""
    history, knowledge, model = (
        running_service.history,
        running_service.knowledge,
        running_service.model,
    )
    history.turns, history.degraded, history.saving_seconds = {}, "", 0
    history.images, model.drawings = {}, ()
    knowledge.known, knowledge.passages, knowledge.down = [HANDBOOK], [PASSAGE], ""
    model.script, model.asked, model.closed = quotes, [], []
    model.routing_seconds, model.rewrites, model.thoughts = 0, {}, ""
    return running_service


@pytest.fixture(name="running_service", scope="session")
def service_of_the_session() -> Iterator[Service]:
    history = InMemoryChatHistory()
    knowledge = InMemoryKnowledgeBase()
    model = scripted(quotes, hello="general_chat")

    @asynccontextmanager
    async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
        yield Chatbot(
            Ports(
                history=history,
                images=history,
                knowledge=knowledge,
                model=model,
                image_policy=ImagePolicy(longest=LONGEST_IMAGE, most=MOST_IMAGES),
                sees_images=True,
            )
        )

    app = create_app(Settings(allowed_hosts="chat.example.com"), open_bot=open_bot)
    add_foreign_routes(app)
    with running_app(app) as url, httpx.Client(base_url=url, timeout=10) as client:
        yield Service(url=url, client=client, history=history, knowledge=knowledge, model=model)


def add_foreign_routes(app: FastAPI) -> None:
    """Add what a server that the app runs in may have beside our routes."""

    @app.get("/threads/{thread}")
    async def read_thread(thread: int) -> dict[str, int]:
        if thread == 0:
            raise HTTPException(404, "no such thread")
        return {"thread": thread}

    @app.post("/threads")
    async def add_thread(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.get("/api/broken")
    async def break_down() -> None:
        message = "secret path /etc/passwd"
        raise RuntimeError(message)
