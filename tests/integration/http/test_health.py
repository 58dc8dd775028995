"""`/health` over a model that has several endpoints."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from pydantic import SecretStr

from chatbot.models.selection import open_model, select_model
from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.http import create_app
from tests.integration.http.ports import InMemoryChatHistory, InMemoryKnowledgeBase
from tests.integration.http.running_app import running_app
from tests.servers.model import ModelServer, answer, by_key, refuse


def test_health_tells_how_each_endpoint_does() -> None:
    replies = by_key({"key-hidden": refuse(429), "key-good": answer("Hello.")})
    with ModelServer(replies) as server:
        settings = Settings(
            openai_base_url=server.base_url.replace("//", "//ann:hidden@"),
            openai_api_key=SecretStr("key-hidden,key-good"),
            llm_model="scripted",
        )

        @asynccontextmanager
        async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
            choice = select_model(settings)
            assert choice is not None
            async with open_model(choice, settings) as model:
                knowledge = InMemoryKnowledgeBase()
                yield Chatbot(
                    Ports(history=InMemoryChatHistory(), knowledge=knowledge, model=model)
                )

        with (
            running_app(create_app(settings, open_bot=open_bot)) as url,
            httpx.Client(base_url=url, timeout=10) as client,
        ):
            client.post("/api/chat", json={"question": "Hello?"})
            health = client.get("/health")
    first, second = health.json()["endpoints"]
    assert health.json()["status"] == "ok"
    assert "hidden" not in health.text
    assert 50 < first.pop("seconds") <= 60
    assert first == {
        "name": "scripted (key 1)",
        "model": "scripted",
        "address": server.base_url,
        "state": "cooling",
        "error": "rate_limit",
        "calls": 1,
        "failures": 1,
    }
    assert (second["name"], second["state"]) == ("scripted (key 2)", "ready")
    assert (second["error"], second["seconds"]) == (None, 0)
