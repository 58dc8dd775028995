"""Whatever an endpoint sends is read, or becomes a typed error."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk

from chatbot.errors import ModelError
from chatbot.models.completion import Completion

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "<think>"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "message", "content", "tool_calls", "function", "arguments",
             "name", "id", "index", "finish_reason", "usage", "prompt_tokens", "error", "code",
             "reasoning_content", "text", "thinking", "image_url", "images", "function_call",
             "completion_tokens_details", "prompt_tokens_details", "model", "refusal"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


def completion() -> Completion:
    return Completion("scripted", "", reasoning_opened=False)


@settings(deadline=None)
@given(st.lists(VALUES, max_size=4), VALUES, VALUES)
def test_any_frames_are_read_or_refused(frames: list[Any], delta: Any, calls: Any) -> None:
    deltas = [{"choices": [{"delta": each}]} for each in (delta, {"tool_calls": calls})]
    sent = [*frames, *deltas]
    reader = completion()
    with contextlib.suppress(ModelError):
        for frame in sent:
            reader.add_json(json.dumps(frame).encode())
            reader.take()
        reader.last()


@settings(deadline=None)
@given(st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ModelError):
        completion().add_json(data)


def test_what_comes_together_becomes_one_chunk() -> None:
    reader = completion()
    for piece in ("Pa", "ris", "."):
        reader.add({"choices": [{"delta": {"content": piece}}]})
    chunk = reader.take()
    assert chunk is not None
    assert chunk.content == "Paris."
    assert reader.take() is None


def test_chunks_share_nothing() -> None:
    reader = completion()
    chunks = []
    for piece in ("one", "two"):
        reader.add({"choices": [{"delta": {"content": piece}}]})
        chunks.append(reader.take())
    first, second = chunks
    assert first is not None
    assert second is not None
    assert (first, second) == (AIMessageChunk(content="one"), AIMessageChunk(content="two"))
    for held in ("additional_kwargs", "response_metadata"):
        getattr(first, held)["x"] = 1
    for held in ("tool_calls", "invalid_tool_calls", "tool_call_chunks"):
        getattr(first, held).append("x")
    assert second == AIMessageChunk(content="two")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"choices": [{"delta": {"content": "x"}}]}', id="plain"),
        pytest.param(
            b'\xef\xbb\xbf{"choices": [{"delta": {"content": "x"}}]}', id="byte order"
        ),
        pytest.param(b'{"logprob": NaN, "choices": [{"delta": {"content": "x"}}]}', id="NaN"),
        pytest.param(b'{"id": "\\ud83d", "choices": [{"delta": {"content": "x"}}]}', id="half"),
        pytest.param(
            b'{"id": "\xff", "choices": [{"delta": {"content": "x"}}]}', id="no UTF-8"
        ),
    ],
)
def test_json_is_read_as_endpoints_write_it(data: bytes) -> None:
    reader = completion()
    reader.add_json(data)
    chunk = reader.take()
    assert chunk is not None
    assert chunk.content == "x"


def test_images_of_an_answer_are_kept() -> None:
    reader = completion()
    url = "data:image/png;base64,AAAA"
    image = {"type": "image_url", "image_url": {"url": url}}
    reader.add({"choices": [{"delta": {"content": "Here.", "images": [image]}}]})
    chunk = reader.take()
    assert chunk is not None
    assert chunk.additional_kwargs["images"] == [url]
