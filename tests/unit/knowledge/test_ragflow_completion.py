"""Single frames of an assistant's answer, as no version of the server mixes them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.ragflow.completion import Completion
from chatbot.knowledge.ragflow.connection import Connection


def read(frames: Sequence[dict[str, Any]]) -> tuple[str, str, list[str]]:
    """Return the text, the thoughts, and the names of what is referred to."""
    reader = Completion(Connection("http://127.0.0.1:1", "key"), "A")
    text = thoughts = ""
    documents: list[str] = []
    pieces = [p for f in frames for p in reader.read(json.dumps({"code": 0, "data": f}))]
    for piece in [*pieces, *reader.end()]:
        text = piece.text if piece.replaces else text + piece.text
        thoughts += piece.thought
        documents = [each.document for each in piece.passages] or documents
    return text, thoughts, documents


def delta(answer: str, **more: Any) -> dict[str, Any]:
    return {"answer": answer, "final": False, **more}


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        pytest.param([delta("a "), delta("a "), delta("b")], "a a b", id="pieces alike"),
        pytest.param([{"answer": "a"}, {"answer": "a b"}], "a b", id="text so far"),
        pytest.param([{"answer": "a b"}, {"answer": "a c"}], "a c", id="text so far, mended"),
        pytest.param(
            [{"answer": "a b"}, {"answer": "a c"}, {"answer": "a c d"}],
            "a c d",
            id="text so far, mended in the middle",
        ),
        pytest.param([{"answer": "a b"}, {"answer": ""}], "a b", id="an empty frame"),
        pytest.param([delta("a"), {"answer": "", "final": True}], "a", id="an empty end"),
        pytest.param([delta("a"), {"answer": "b", "final": True}], "b", id="another end"),
        pytest.param([delta("a"), {"answer": None}, delta("b")], "ab", id="no text"),
        pytest.param(
            [delta("The light says **ERROR**: call us. ")],
            "The light says **ERROR**: call us. ",
            id="an answer about errors",
        ),
        pytest.param([delta("<think>x</think>a")], "a", id="thoughts in a piece"),
    ],
)
def test_frames_make_a_text(frames: Sequence[dict[str, Any]], text: str) -> None:
    assert read(frames)[0] == text


def test_thoughts_are_told_from_the_answer() -> None:
    frames = [
        delta("", start_to_think=True),
        delta("Let me "),
        delta("see."),
        delta("", end_to_think=True),
        delta("Yes."),
    ]
    assert read(frames) == ("Yes.", "Let me see.", [])


def test_a_reference_without_text_keeps_its_number() -> None:
    chunks = [{"content": "", "document_name": "a"}, {"content": "b", "document_name": "b"}, {}]
    frames = [delta("x [ID:1]"), {"answer": "", "final": True, "reference": {"chunks": chunks}}]
    assert read(frames) == ("x [ID:1]", "", ["a", "b", "A"])


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([delta("\n**ERROR**: 'x'")], id="at the beginning of a piece"),
        pytest.param([delta("So it **ERROR**: TIMEOUT - late")], id="behind text in a piece"),
        pytest.param([{"answer": "So"}, {"answer": "So**ERROR**: x"}], id="in text so far"),
        pytest.param(
            [delta("So"), {"answer": "So **ERROR**: MODEL_ERROR - x", "final": True}],
            id="in the last frame",
        ),
        pytest.param(
            [delta("", start_to_think=True), delta("**ERROR**: MODEL_ERROR - x")],
            id="while it thinks",
        ),
    ],
)
def test_an_error_in_the_text_is_one(frames: Sequence[dict[str, Any]]) -> None:
    with pytest.raises(KnowledgeBaseError, match="model of RAGFlow's assistant 'A' failed"):
        read(frames)
