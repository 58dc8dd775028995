"""`/health` over a model that has several endpoints."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import pytest
from pydantic import SecretStr

from chatbot.models.selection import open_model, select_model
from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.http import create_app
from tests.integration.http.ports import InMemoryChatHistory, InMemoryKnowledgeBase
from tests.integration.http.running_app import running_app
from tests.servers.model import ModelServer, Script, answer, by_key, html, refuse


@contextmanager
def served(settings: Settings) -> Iterator[httpx.Client]:
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
        yield client


def test_health_tells_how_each_endpoint_does() -> None:
    replies = by_key({"key-hidden": refuse(429), "key-good": answer("Hello.")})
    with ModelServer(replies) as server:
        settings = Settings(
            openai_base_url=server.base_url.replace("//", "//ann:hidden@"),
            openai_api_key=SecretStr("key-hidden,key-good"),
            llm_model="scripted",
        )
        with served(settings) as client:
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


@pytest.mark.parametrize(
    ("script", "ready", "answered"),
    [
        pytest.param(answer("one two", finish=None, ending="reset"), 200, True, id="cut"),
        pytest.param(html(), 200, True, id="web page"),
        pytest.param(refuse(401), 503, False, id="refused key"),
    ],
)
def test_only_a_model_that_takes_nobody_makes_the_service_unready(
    script: Script, ready: int, answered: bool
) -> None:
    failed = threading.Event()
    with ModelServer(lambda _: answer("Paris.") if failed.is_set() else script) as server:
        settings = Settings(openai_base_url=server.base_url, llm_model="scripted")
        with served(settings) as client:
            first = client.post("/api/chat", json={"question": "Where?", "session_id": "a"})
            failed.set()
            seen = client.get("/health/ready")
            second = client.post("/api/chat", json={"question": "Who?", "session_id": "b"})
    assert '"type":"error"' in first.text
    assert seen.status_code == ready
    assert ("Paris." in second.text) == answered
