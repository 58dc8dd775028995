"""Turns under the LangGraph server are traced as those in Python are."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client

from tests.servers.chatbot import chatbot_server, running_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call, refuse
from tests.servers.traces import Run, trace_sink

pytestmark = pytest.mark.timeout(300)

SECRET = "secret-of-langsmith"
MODEL_KEY = "secret-of-the-model"
STEPS = ["load_history", "route", "enhance_query", "retrieve", "answer", "save_turn"]
QUESTION = "How many days of annual leave do I get?"


def reply(request: ChatRequest) -> Script:
    if request.tools:
        return call("knowledge_base")
    if "fail" in request.question:
        return refuse(400, f"Incorrect API key provided: {request.key}")
    return answer("25 days [ID:1].")


def everything(run: Run) -> list[Run]:
    return [run, *(each for child in run.children for each in everything(child))]


async def asked(url: str, *questions: str) -> str:
    """Have the server answer these questions as runs of a thread, and return its id."""
    async with get_client(url=url) as client:
        thread: str = (await client.threads.create())["thread_id"]
        for question in questions:
            said: dict[str, Any] = {"messages": [{"role": "user", "content": question}]}
            async for _ in client.runs.stream(
                thread, "chatbot", input=said, stream_mode="custom"
            ):
                pass
    return thread


async def test_what_fails_is_told_in_a_line(tmp_path: Path) -> None:
    with trace_sink() as sink, ModelServer(reply) as model:
        sink.fault = 401
        settings = {
            "LANGSMITH_TRACING": "1",
            "LANGSMITH_ENDPOINT": sink.url,
            "LANGSMITH_API_KEY": SECRET,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": MODEL_KEY,
            "LLM_MODEL": "scripted",
        }
        with chatbot_server(tmp_path, "dev", settings=settings) as server:
            await asked(server.url, QUESTION, "Does it fail now?")
            async with asyncio.timeout(60):
                while "LangSmith" not in server.log.read_text():  # noqa: ASYNC110 - a file
                    await asyncio.sleep(0.1)
        lines = server.log.read_text(encoding="utf-8").splitlines()
    [refused] = [line for line in lines if "LangSmith" in line]
    assert "Traces do not reach LangSmith: it refuses LANGSMITH_API_KEY (status 401)" in refused
    [failed] = [line for line in lines if "ERROR" in line]
    assert "a run failed: " in failed
    assert "Traceback" not in "".join(lines)


async def test_a_run_is_one_trace_of_its_thread(tmp_path: Path) -> None:
    with trace_sink() as sink, ModelServer(reply) as model:
        settings = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": sink.url,
            "LANGSMITH_API_KEY": SECRET,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": MODEL_KEY,
            "LLM_MODEL": "scripted",
        }
        with running_chatbot(tmp_path, "dev", settings=settings) as url:
            async with httpx.AsyncClient(base_url=url, timeout=60) as http:
                body = {"question": QUESTION, "session_id": "over-http"}
                (await http.post("/api/chat", json=body)).raise_for_status()
            thread = await asked(url, QUESTION, "Does it fail now?")
            over_http, answered, failed = sink.wait_for_roots(3, seconds=60)
            sent = sink.raw
    for root, of in ((over_http, "over-http"), (answered, thread), (failed, thread)):
        assert root.name == "chatbot"
        assert root.metadata["session_id"] == of
        assert of in root.metadata["thread_id"]
        assert {run.metadata["thread_id"] for run in everything(root)} == {
            root.metadata["thread_id"]
        }
        assert root.metadata["intent"] == "knowledge_base"
    assert list(answered.tree()) == STEPS
    assert list(over_http.tree()) == STEPS
    assert answered.metadata["status"] == over_http.metadata["status"] == "complete"
    assert failed.metadata["status"] == "failed"
    assert failed.metadata["error"] == "model_auth"
    assert SECRET.encode() not in sent
    assert MODEL_KEY.encode() not in sent
