"""Whatever an endpoint sends is read, or becomes a typed error."""

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_images_of_an_answer_are_kept() -> None:
    reader = completion()
    url = "data:image/png;base64,AAAA"
    image = {"type": "image_url", "image_url": {"url": url}}
    reader.add({"choices": [{"delta": {"content": "Here.", "images": [image]}}]})
    chunk = reader.take()
    assert chunk is not None
    assert chunk.additional_kwargs["images"] == [url]
