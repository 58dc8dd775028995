"""Models of other providers: their chunks and failures become like ours."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chatbot.models.endpoints import Endpoint, ModelChoice
from chatbot.models.pool import ModelPool
from chatbot.models.selection import open_model
from chatbot.settings import Settings
from tests.integration.models.streams import Seen, watch
from tests.integration.models.test_openai_compatible import Runs, knowledge_base
from tests.servers.loopback import Loopback, Reply, Request

Event = Mapping[str, Any]
START = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-of-the-test",
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    },
}  # fmt: skip


def block(index: int, start: Event, *deltas: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str) -> list[Event]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
         "usage": {"input_tokens": 11, "output_tokens": 5}},
        {"type": "message_stop"},
    ]  # fmt: skip


TEXT = block(
    0,
    {"type": "text", "text": ""},
    {"type": "text_delta", "text": "Paris "},
    {"type": "text_delta", "text": "is."},
)
THINKING = [
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": "abc"},
    ),
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Paris."}),
]
CALL = block(
    0,
    {"type": "tool_use", "id": "toolu_1", "name": "knowledge_base", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"question": '},
    {"type": "input_json_delta", "partial_json": '"巴黎"}'},
)


class Anthropic(Loopback):
    """Anthropic's messages, as a stream of the given events, or one failure."""

    def __init__(self, events: Sequence[Event], *, status: int = 200) -> None:
        super().__init__(self._handle)
        self._events = events
        self._status = status

    async def _handle(self, _: Request, reply: Reply) -> None:
        if self._status != 200:
            reply.extra.append(("Retry-After", "4"))
            error = {"type": "error", "message": "no sk-ant-secret-key-of-the-test"}
            await reply.json({"type": "error", "error": error}, status=self._status)
            return
        await reply.start()
        for event in self._events:
            await reply.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await reply.end()


@asynccontextmanager
async def claude(server: Loopback) -> AsyncIterator[ModelPool]:
    settings = Settings(turn_timeout_seconds=3)
    key = Settings(openai_api_key="sk-ant-secret-key-of-the-test").openai_api_key
    endpoint = Endpoint(
        provider="anthropic", model="claude-of-the-test", base_url=server.url, api_key=key
    )
    async with open_model(ModelChoice(endpoints=[endpoint]), settings) as model:
        yield model


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [START, *TEXT, *end("end_turn")], Seen(answer="Paris is.", finish="stop"), id="text"
        ),
        pytest.param(
            [START, *THINKING, *end("end_turn")],
            Seen(answer="Paris.", reasoning="Hm.", finish="stop"),
            id="thinking",
        ),
        pytest.param(
            [START, *CALL, *end("tool_use")],
            Seen(calls=[("knowledge_base", {"question": "巴黎"})], finish="tool_calls"),
            id="a call",
        ),
        pytest.param(
            [START, *TEXT, *end("max_tokens")],
            Seen(answer="Paris is.", finish="length"),
            id="cut",
        ),
    ],
)  # fmt: skip
async def test_another_providers_chunks_become_like_ours(
    events: Sequence[Event], expected: Seen
) -> None:
    runs = Runs()
    with Anthropic(events) as server:
        async with claude(server) as model:
            bound = model.bind_tools([knowledge_base], tool_choice="any")
            seen = await watch(bound.astream("Where is Paris?", config={"callbacks": [runs]}))
    assert (seen.answer, seen.reasoning) == (expected.answer, expected.reasoning)
    assert (seen.calls, seen.finish, seen.error) == (expected.calls, expected.finish, None)
    assert (runs.started, runs.ended) == (1, 1)
    body = server.requests[0].json()
    assert body["tool_choice"] == {"type": "any"}
    assert body["tools"][0]["name"] == "knowledge_base"


async def test_another_provider_is_told_what_it_knows_a_word_for() -> None:
    with Anthropic([START, *TEXT, *end("end_turn")]) as server:
        async with claude(server) as model:
            await model.ainvoke("Hi.", user="ann", stop=["END"], temperature=0.1)
            refused = await watch(model.astream("Hi.", logit_bias={"1": 2}))
            state = model.states()[0].state
    body = server.requests[0].json()
    assert (body["metadata"], body["stop_sequences"]) == ({"user_id": "ann"}, ["END"])
    assert body["temperature"] == 0.1
    assert (refused.kind, state, len(server.requests)) == ("bad_request", "ready", 1)
    assert "logit_bias" in str(refused.error)


async def test_another_providers_usage_is_counted_once() -> None:
    with Anthropic([START, *TEXT, *end("end_turn")]) as server:
        async with claude(server) as model:
            message = await model.ainvoke("Where is Paris?")
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 11
    assert message.usage_metadata["output_tokens"] == 5
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.response_metadata["model_name"] == "claude-of-the-test"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        pytest.param(400, "bad_request", id="400"),
        pytest.param(401, "auth", id="401"),
        pytest.param(429, "rate_limit", id="429"),
    ],
)
async def test_another_providers_failures_become_ours(status: int, kind: str) -> None:
    with Anthropic([], status=status) as server:
        async with claude(server) as model:
            seen = await watch(model.astream("Where is Paris?"))
    assert (seen.kind, len(server.requests)) == (kind, 1)
    assert "secret" not in str(seen.error)
    if kind == "rate_limit":
        assert seen.error is not None
        assert seen.error.retry_after == 4


async def test_another_providers_cut_stream_is_noticed() -> None:
    with Anthropic([START, *TEXT]) as server:
        async with claude(server) as model:
            seen = await watch(model.astream("Where is Paris?"))
    assert (seen.answer, seen.kind) == ("Paris is.", "interrupted")


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        pytest.param("any", {"type": "any"}, id="one has to be called"),
        pytest.param("required", {"type": "any"}, id="in OpenAI's word"),
        pytest.param("none", {"type": "none"}, id="none is to be called"),
        pytest.param(None, None, id="as the model likes"),
    ],
)
async def test_which_tool_is_to_be_called(choice: str | None, sent: Event | None) -> None:
    with Anthropic([START, *TEXT, *end("end_turn")]) as server:
        async with claude(server) as model:
            bound = model.bind_tools([knowledge_base], tool_choice=choice)
            seen = await watch(bound.astream("Where is Paris?"))
    body = server.requests[0].json()
    assert (seen.answer, body.get("tool_choice")) == ("Paris is.", sent)
    assert [tool["name"] for tool in body["tools"]] == ["knowledge_base"]


async def test_a_form_that_another_provider_would_not_get_is_refused() -> None:
    with Anthropic([START, *TEXT, *end("end_turn")]) as server:
        async with claude(server) as model:
            bound = model.bind(response_format={"type": "json_object"})
            seen = await watch(bound.astream("Where is Paris?"))
    assert (seen.kind, server.requests) == ("unsupported", [])
