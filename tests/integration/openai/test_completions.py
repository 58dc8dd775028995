"""The bot behind OpenAI's own client, and the requests that chat programs send."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.integration.http.workers import Workers, workers
from tests.servers.model import Brain, ChatRequest, Script, answer, call, refuse

LOOK_UP = call("knowledge_base", {"assistants": ["Handbook"]})
FOOT = "\n\n---\n**[1]** leave.md · Leave · Handbook"
SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer"}},
    "required": ["days"],
    "additionalProperties": False,
}


def think(request: ChatRequest) -> Script:
    question = request.question
    if "knowledge_base" in request.tools:
        return (
            LOOK_UP if "leave" in question and "Task" not in question else call("general_chat")
        )
    if "break down" in question:
        return refuse(400, "no")
    if "response_format" in request.body or "JSON" in request.instructions:
        return answer('{"days": 25}')
    if "leave" in question and "Task" not in question:
        return answer(["You have 25 days", " [1]", "."], usage=(100, 7))
    return answer(["Good ", "day."], usage=(50, 3))


@pytest.fixture(name="running", scope="module")
def running_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    brain = Brain()
    with workers(tmp_path_factory.mktemp("openai"), brain) as running:
        running.model._replies = think  # noqa: SLF001 - by request, not by table
        yield running


@pytest.fixture(name="client")
def openai_client(running: Workers) -> Iterator[openai.OpenAI]:
    base_url = f"{running.clients[0].base_url}/v1"
    with openai.OpenAI(base_url=base_url, api_key="unused", max_retries=0) as client:
        yield client


def said(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def test_whole_answer_with_its_sources(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model="chatbot", messages=said("How many days of leave?")
    )
    (choice,) = completion.choices
    assert choice.message.content == "You have 25 days [1]." + FOOT
    assert choice.finish_reason == "stop"
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (100, 7)
    (citation,) = choice.message.model_extra["citations"]  # type: ignore[index]
    assert citation["document"] == "leave.md"
    assert completion.id.startswith("chatcmpl-")


def test_streamed_answer_is_the_same(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="chatbot",
            messages=said("How many days of leave?"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "You have 25 days [1]." + FOOT
    assert deltas[0].role == "assistant"
    finishes = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert finishes[-1] == "stop"
    assert set(finishes[:-1]) == {None}
    assert deltas[-1].model_extra["citations"][0]["number"] == 1  # type: ignore[index]
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 107
    assert len({chunk.id for chunk in chunks}) == 1


def test_the_messages_are_the_conversation(client: openai.OpenAI, running: Workers) -> None:
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Speak like a pirate."},
        {"role": "assistant", "content": "Welcome! Ask me anything."},
        {"role": "user", "content": "How many days of leave?"},
        {"role": "assistant", "content": "You have 25 days [1]." + FOOT},
        {"role": "user", "content": "Thanks"},
        {"role": "user", "content": "Good day"},
    ]
    before = len(running.model.seen)
    client.chat.completions.create(model="chatbot", messages=messages)

    asked = running.model.seen[-1]
    texts = [message["content"] for message in asked.messages if message["role"] != "system"]
    roles = [message["role"] for message in asked.messages if message["role"] != "system"]
    assert "Speak like a pirate." in asked.instructions
    assert roles[-1] == "user"
    assert all(one != two for one, two in pairwise(roles))
    assert any("You have 25 days" in text and "leave.md" not in text for text in texts)
    assert not any("Welcome!" in text for text in texts)
    assert len(running.model.seen) - before == 2
    assert running.clients[0].get("/api/sessions").json() == {"sessions": []}


def test_conversation_may_be_kept_here(client: openai.OpenAI, running: Workers) -> None:
    headers = {"X-Session-Id": "kept"}
    for question in ("How many days of leave?", "Good day"):
        client.chat.completions.create(
            model="chatbot", messages=said(question), extra_headers=headers
        )
    turns = running.clients[0].get("/api/sessions/kept").json()["turns"]
    assert [turn["question"] for turn in turns] == ["How many days of leave?", "Good day"]
    running.clients[0].delete("/api/sessions/kept")


def test_each_assistant_is_a_model(client: openai.OpenAI) -> None:
    models = [model.id for model in client.models.list()]
    assert models == ["chatbot", "chatbot/Handbook"]
    assert client.models.retrieve("chatbot/Handbook").id == "chatbot/Handbook"
    completion = client.chat.completions.create(
        model="chatbot/Handbook", messages=said("How many days of leave?")
    )
    assert completion.model == "chatbot/Handbook"
    with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-5'"):
        client.chat.completions.create(model="gpt-5", messages=said("Good day"))


def test_answer_in_a_schema_has_no_foot(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model="chatbot",
        messages=said("How many days of leave?"),
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "leave", "schema": SCHEMA, "strict": True},
        },
    )
    assert json.loads(completion.choices[0].message.content or "") == {"days": 25}


def test_parameters_reach_the_model(client: openai.OpenAI, running: Workers) -> None:
    client.chat.completions.create(
        model="chatbot",
        messages=said("Good day"),
        temperature=0.3,
        max_tokens=77,
        stop=["END"],
        seed=5,
    )
    body = running.model.seen[-1].body
    assert (body["temperature"], body["stop"], body["seed"]) == (0.3, ["END"], 5)
    assert 77 in {body.get("max_tokens"), body.get("max_completion_tokens")}


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        pytest.param(
            {"tools": [{"type": "function", "function": {"name": "f"}}]}, "Tools", id="tools"
        ),
        pytest.param(
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            "Tools",
            id="a tool by name",
        ),
        pytest.param({"tool_choice": "required"}, "Tools", id="a choice of tools"),
        pytest.param({"n": 2}, "n must be 1", id="two answers"),
        pytest.param({"messages": []}, "messages", id="no messages"),
        pytest.param(
            {"messages": [{"role": "assistant", "content": "a"}]}, "last", id="no question"
        ),
        pytest.param({"messages": [{"role": "user", "content": " "}]}, "last", id="a blank"),
        pytest.param({"messages": [{"role": "user", "content": None}]}, "last", id="nothing"),
        pytest.param(
            {"messages": [{"role": "king", "content": "a"}]}, "role", id="a strange role"
        ),
        pytest.param({"temperature": 9}, "temperature", id="too hot"),
        pytest.param(
            {"response_format": {"type": "json_schema"}}, "json_schema", id="no schema"
        ),
        pytest.param(
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {
                                "type": "image_url",
                                "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                            },
                            {"type": "text", "text": "What is it?"},
                        ],
                    }
                ]
            },
            "image",
            id="an image for a model that sees none",
        ),
    ],
)
def test_what_is_not_done_is_refused_clearly(
    running: Workers, extra: dict[str, Any], told: str
) -> None:
    body = {"model": "chatbot", "messages": said("Good day"), **extra}
    response = running.clients[0].post("/v1/chat/completions", json=body)
    assert 400 <= response.status_code < 600
    assert told in response.json()["error"]["message"]
    assert set(response.json()["error"]) >= {"code", "message", "retryable"}


def test_failure_of_the_model_is_an_error_and_no_answer(client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIStatusError) as whole:
        client.chat.completions.create(model="chatbot", messages=said("break down"))
    with pytest.raises(openai.APIError) as streamed:
        list(
            client.chat.completions.create(
                model="chatbot", messages=said("break down"), stream=True
            )
        )
    assert whole.value.status_code >= 500 or whole.value.status_code == 400
    assert whole.value.code == streamed.value.code
    assert str(whole.value.code).startswith("model_")


def test_what_open_webui_sends(running: Workers) -> None:
    http = running.clients[0]
    chat = {
        "stream": True,
        "model": "chatbot",
        "messages": said("How many days of leave?"),
        "params": {},
        "features": {"web_search": False},
        "variables": {"{{USER_NAME}}": "Ann"},
        "chat_id": "c",
        "session_id": "s",
        "id": "m",
        "background_tasks": {"title_generation": True},
        "stream_options": {"include_usage": True},
    }
    streamed = http.post("/v1/chat/completions", json=chat)
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.text.rstrip().endswith("data: [DONE]")

    title = {
        "model": "chatbot",
        "messages": said(
            "### Task:\nGenerate a concise, 3-5 word title for this chat history.\n"
            "<chat_history>\nUSER: How many days of leave?\n</chat_history>"
        ),
        "stream": False,
        "max_completion_tokens": 1000,
        "metadata": {"task": "title_generation"},
    }
    before = len(running.model.seen)
    made = http.post("/v1/chat/completions", json=title).json()
    assert made["choices"][0]["message"]["content"] == "Good day."
    assert len(running.model.seen) - before == 1  # nothing is to be decided or looked up


def test_what_librechat_sends(running: Workers) -> None:
    chat = {
        "model": "chatbot",
        "temperature": 1,
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "user": "65f0c0ffee",
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Good day"}]}],
    }
    with running.clients[0].stream("POST", "/v1/chat/completions", json=chat) as response:
        lines = [line for line in response.iter_lines() if line.startswith("data: {")]
    text = "".join(
        json.loads(line[6:])["choices"][0]["delta"].get("content", "") for line in lines
    )
    assert text == "Good day."


def test_client_that_leaves_stops_the_model(running: Workers) -> None:
    before = running.model.abandoned
    slow = answer(["word "] * 200, delay=0.05)
    running.model._replies = lambda request: (  # noqa: SLF001 - as above
        call("general_chat") if request.tools else slow
    )
    body = {"model": "chatbot", "messages": said("slowly"), "stream": True}
    try:
        with running.clients[0].stream("POST", "/v1/chat/completions", json=body) as response:
            next(line for line in response.iter_lines() if "word" in line)
        for _ in range(100):
            if running.model.abandoned > before:
                break
            httpx.get(f"{running.clients[0].base_url}/health/live")
        assert running.model.abandoned == before + 1
    finally:
        running.model._replies = think  # noqa: SLF001 - as above
