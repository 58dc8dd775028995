from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatbot.knowledge.ragflow import wire
from chatbot.knowledge.ragflow.chunks import read_passages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = [
    *("id", "name", "content", "chunks", "datasets", "prompt", "prompt_config", "positions"),
    *("similarity", "dataset_ids", "top_n", "top_k", "url", "document_metadata", "data"),
    *("meta_data_filter", "method", "manual", "key", "op", "run", "size", "progress"),
    *("similarity_threshold", "keywords_similarity_weight", "cross_languages", "total"),
]
ROWS = st.dictionaries(st.sampled_from(NAMES), JSON)


def chunk(**more: Any) -> dict[str, Any]:
    return {"id": "c1", "content": "text", "document_id": "d1", "similarity": 0.5, **more}


def read(**more: Any) -> Any:
    (passage,) = read_passages({"chunks": [chunk(**more)]}, "A")
    return passage


@pytest.mark.parametrize(
    ("similarity", "score"),
    [
        pytest.param(0.25, 0.25, id="between 0 and 1"),
        pytest.param(1.7, 1.0, id="above 1"),
        pytest.param(-0.2, 0.0, id="below 0"),
        pytest.param(None, 0.0, id="null"),
        pytest.param(float("nan"), 0.0, id="not a number"),
        pytest.param(float("inf"), 0.0, id="infinite"),
        pytest.param("0.5", 0.5, id="number as text"),
        pytest.param("high", 0.0, id="text"),
        pytest.param(True, 0.0, id="boolean"),
        pytest.param(10**400, 0.0, id="too large for a float"),
    ],
)
def test_scores_are_between_0_and_1(similarity: object, score: float) -> None:
    assert read(similarity=similarity).score == score


@pytest.mark.parametrize(
    ("positions", "location"),
    [
        pytest.param([[3, 71, 540, 88, 120]], "p. 3", id="a page"),
        pytest.param([[4, 1, 2, 3, 4], [3, 1, 2, 3, 4]], "p. 3–4", id="two pages"),
        pytest.param([[7, 7, 7, 7, 7]], "¶ 7", id="a part of a text without pages"),
        pytest.param([], "", id="none"),
        pytest.param(None, "", id="null"),
        pytest.param([[1, 2]], "", id="incomplete box"),
        pytest.param([["a", "b", "c", "d", "e"]], "", id="text"),
    ],
)
def test_a_location_is_what_a_person_can_follow(positions: object, location: str) -> None:
    assert read(positions=positions).location == location


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        pytest.param(
            {"url": "https://example.org/a"}, "https://example.org/a", id="web address"
        ),
        pytest.param({"url": "javascript:alert(1)"}, None, id="script"),
        pytest.param({"url": "file:///etc/passwd"}, None, id="file"),
        pytest.param({"url": "http://[bad"}, None, id="broken address"),
        pytest.param({"url": ""}, None, id="empty"),
        pytest.param(
            {"document_metadata": {"url": "http://a.b/c"}}, "http://a.b/c", id="metadata"
        ),
    ],
)
def test_only_web_addresses_open_a_document(fields: dict[str, Any], url: str | None) -> None:
    assert read(**fields).url == url


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            {"id": "c", "content": "t", "document_id": "d", "document_name": "n"},
            id="reference",
        ),
        pytest.param(
            {"id": "c", "content": "t", "document_id": "d", "document_keyword": "n"},
            id="retrieval",
        ),
        pytest.param(
            {"chunk_id": "c", "content_with_weight": "t", "doc_id": "d", "docnm_kwd": "n"},
            id="raw",
        ),
    ],
)
@pytest.mark.parametrize("as_dict", [False, True], ids=["list", "dict"])
def test_chunks_have_several_shapes(row: dict[str, Any], as_dict: bool) -> None:
    chunks: Any = {"c": row} if as_dict else [row]
    (passage,) = read_passages({"chunks": chunks}, "A")
    assert (passage.id, passage.text, passage.document_id) == ("c", "t", "d")
    assert (passage.document, passage.assistant) == ("n", "A")


def test_a_chunk_without_text_is_no_passage() -> None:
    assert read_passages({"chunks": [{"id": "c"}, None, "x", chunk(content=" ")]}, "A") == []


def test_a_chunk_without_id_gets_one_of_its_own() -> None:
    chunks = [{"content": "a"}, {"content": "b"}, {"content": "a"}]
    first, second, third = read_passages({"chunks": chunks}, "A")
    assert first.id == third.id != second.id


def test_a_weight_for_words_is_turned_into_one_for_vectors() -> None:
    for by_words, by_vectors in ((0.75, 0.25), (0, 1), (1, 0)):
        row = {"id": "a", "prompt": {"keywords_similarity_weight": by_words}}
        chat = wire.chat(row)
        assert chat is not None
        assert chat.vector_similarity_weight == by_vectors


@pytest.mark.parametrize(
    ("chosen", "condition"),
    [
        pytest.param(
            {
                "method": "manual",
                "logic": "or",
                "manual": [{"key": "k", "op": "=", "value": 1}],
            },
            {
                "logic": "or",
                "conditions": [{"name": "k", "comparison_operator": "=", "value": 1}],
            },
            id="by hand",
        ),
        pytest.param(
            {"method": "auto", "manual": [{"key": "k", "op": "="}]}, None, id="by model"
        ),
        pytest.param({"method": "manual", "manual": [{"key": ""}, 1]}, None, id="incomplete"),
        pytest.param({}, None, id="none"),
        pytest.param(None, None, id="null"),
    ],
)
def test_a_filter_on_metadata_is_kept(chosen: object, condition: object) -> None:
    chat = wire.chat({"id": "a", "meta_data_filter": chosen})
    assert chat is not None
    assert chat.metadata_condition == condition


@settings(max_examples=40, deadline=None)
@given(JSON | ROWS | st.fixed_dictionaries({"data": JSON | ROWS, "chunks": st.lists(ROWS)}))
def test_no_reply_breaks_the_reader(value: Any) -> None:
    for passage in read_passages(value, "A"):
        assert 0 <= passage.score <= 1
    if isinstance(value, dict):
        wire.chat(value)
        wire.dataset(value)
        wire.document(value)
        assert all(isinstance(row, dict) for row in wire.page(value, "chats").rows)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_an_assistant_always_has_usable_settings(row: dict[str, Any]) -> None:
    chat = wire.chat({**row, "id": "a"})
    assert chat is not None
    assert chat.name
    assert 1 <= chat.top_n <= wire.PAGE_SIZE
    assert chat.top_k >= 1
    assert all(chat.dataset_ids)
