"""The embedded knowledge base with an endpoint for embeddings, which may fail at any time."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatbot.domain import Findings
from chatbot.errors import ModelError
from chatbot.knowledge.local.embedding import Embedder
from chatbot.knowledge.local.knowledge_base import EMBEDDINGS, LocalKnowledgeBase
from chatbot.knowledge.local.similarity import Similarity
from chatbot.knowledge.local.vectors import VectorStore
from chatbot.models.endpoint_client import EndpointClient
from tests.servers.embeddings import (
    EmbeddingServer,
    Fault,
    fail,
    hang,
    refuse,
    saying,
    vector,
)
from tests.servers.loopback import Reply, Request

KEY = "a-key"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "knowledge" / "a"
    path.mkdir(parents=True)
    (path / "pump.md").write_text("# Pump\n\nThe pump gets oil every 400 hours.")
    (path / "leave.md").write_text("# Leave\n\nEverybody has ten days of leave.")
    (path / "duck.md").write_text("# Duck\n\nThe duck swims.")
    return path.parent


def embedder(server: EmbeddingServer, *, query_seconds: float = 30) -> Embedder:
    client = EndpointClient(server.base_url, api_key=KEY, name="scripted for embeddings")
    return Embedder(client, "scripted", query_seconds=query_seconds, pause_seconds=0.01)


@asynccontextmanager
async def opened(
    server: EmbeddingServer,
    folder: Path,
    *,
    rest_seconds: float = 60,
    query_seconds: float = 30,
    generous: bool = False,
) -> AsyncIterator[LocalKnowledgeBase]:
    data_dir = folder.parent / "data"
    similarity = Similarity(
        embedder(server, query_seconds=query_seconds),
        VectorStore(data_dir / "vectors"),
        threshold=0.5,
        rest_seconds=rest_seconds,
    )
    knowledge_base = LocalKnowledgeBase(
        folder, data_dir, similarity=similarity, generous=generous
    )
    try:
        yield knowledge_base
    finally:
        await knowledge_base.aclose()


async def find(knowledge_base: LocalKnowledgeBase, query: str) -> Findings:
    available = await knowledge_base.assistants()
    return await knowledge_base.search(query, assistants=available, limit=3)


def documents(found: Findings) -> list[str]:
    return [passage.document for passage in found.passages]


@pytest.mark.parametrize(
    ("query", "document"),
    [
        pytest.param("How do I lubricate the machine?", "pump.md", id="other words"),
        pytest.param("年假有几天", "leave.md", id="another language"),
        pytest.param("duck swims", "duck.md", id="the same words"),
    ],
)
async def test_passages_are_found_by_meaning(
    server: EmbeddingServer, folder: Path, query: str, document: str
) -> None:
    async with opened(server, folder) as knowledge_base:
        assert await knowledge_base.settled() == ""
        found = await find(knowledge_base, query)

    assert documents(found) == [document]
    assert 0.5 <= found.passages[0].score <= 1
    assert found.failures == {}
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("query", "passages", "uncertain"),
    [
        pytest.param(
            "Who lubricates our lawn mower on rainy days?",
            ["pump.md", "leave.md"],
            [],
            id="found by its meaning: what hardly matches comes behind",
        ),
        pytest.param(
            "Who repairs our lawn mower on rainy days?",
            [],
            ["leave.md"],
            id="not found: it is uncertain",
        ),
        pytest.param("blockchain", [], [], id="no word in common"),
    ],
)
async def test_a_model_that_judges_is_given_what_hardly_matches_as_well(
    server: EmbeddingServer,
    folder: Path,
    query: str,
    passages: list[str],
    uncertain: list[str],
) -> None:
    async with opened(server, folder, generous=True) as knowledge_base:
        await knowledge_base.settled()
        found = await find(knowledge_base, query)

    assert documents(found) == passages
    assert [each.document for each in found.uncertain] == uncertain


async def test_nothing_about_the_query_is_an_empty_result(
    server: EmbeddingServer, folder: Path
) -> None:
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        assert documents(await find(knowledge_base, "blockchain")) == []
        assert documents(await find(knowledge_base, "")) == []


async def test_only_the_chosen_assistants_are_searched(
    server: EmbeddingServer, folder: Path
) -> None:
    (folder / "b").mkdir()
    (folder / "b" / "bird.md").write_text("# Bird\n\nA bird flies.")
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        available = {each.id: each for each in await knowledge_base.assistants()}
        found = await knowledge_base.search("鸭子", assistants=[available["b"]], limit=3)

    assert documents(found) == ["bird.md"]


async def test_only_what_is_new_is_embedded(server: EmbeddingServer, folder: Path) -> None:
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
    first = list(server.texts)
    assert sorted(text.partition("\n")[0] for text in first) == ["Duck", "Leave", "Pump"]

    (folder / "a" / "copy.md").write_text("# Grease\n\nGrease is expensive.")
    (folder / "a" / "duck.md").unlink()
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        found = await find(knowledge_base, "润滑")

    assert server.texts[len(first) :] == ["Grease\nGrease is expensive.", "润滑"]
    assert documents(found)[0] == "copy.md"


async def test_the_same_query_is_asked_once(server: EmbeddingServer, folder: Path) -> None:
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        for _ in range(2):
            await find(knowledge_base, "鸭子")

    assert server.texts.count("鸭子") == 1


FAULTS = [
    pytest.param(refuse, "refused the API key", id="bad key"),
    pytest.param(fail, "failed", id="server error"),
    pytest.param(saying({"data": []}), "not an answer", id="no vectors"),
    pytest.param(saying([1]), "not an answer", id="another shape"),
    pytest.param(
        saying({"data": [{"index": 0, "embedding": [0.0, 0.0]}]}), "not an answer", id="zeros"
    ),
    pytest.param(
        saying({"data": [{"index": 0, "embedding": ["a"]}]}), "not an answer", id="no numbers"
    ),
    pytest.param(None, "cannot be reached", id="gone"),
]


@pytest.mark.parametrize(("fault", "reason"), FAULTS)
async def test_a_failing_endpoint_leaves_the_search_by_words(
    server: EmbeddingServer, folder: Path, fault: Fault | None, reason: str
) -> None:
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        if fault is None:
            server.pause()
        server.fault = fault
        found = await find(knowledge_base, "pump oil")
        again = await find(knowledge_base, "pump hours")
        health = await knowledge_base.check()

    assert documents(found) == documents(again) == ["pump.md"]
    for told in (found.failures[EMBEDDINGS], again.failures[EMBEDDINGS], health):
        assert told.startswith("Searched by words alone")
        assert reason in told
        assert KEY not in told


@pytest.mark.parametrize("fault", [refuse, fail, saying({"data": "x"})])
async def test_a_failing_endpoint_does_not_hinder_the_index(
    server: EmbeddingServer, folder: Path, fault: Fault
) -> None:
    server.fault = fault
    async with opened(server, folder, rest_seconds=0) as knowledge_base:
        assert (await knowledge_base.settled()).startswith("Searched by words alone")
        assert documents(await find(knowledge_base, "pump oil")) == ["pump.md"]

        await knowledge_base.settled()  # the search has begun to embed, too
        server.fault = None
        assert await knowledge_base.settled() == ""
        found = await find(knowledge_base, "鸭子")
    assert documents(found) == ["duck.md"]
    assert found.failures == {}


async def test_an_endpoint_that_failed_rests(server: EmbeddingServer, folder: Path) -> None:
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        server.fault = refuse
        await find(knowledge_base, "pump oil")
        asked = len(server.requests)
        for word in ("pump", "duck", "leave"):
            await find(knowledge_base, word)

    assert len(server.requests) == asked


async def test_a_refused_text_does_not_cost_the_others(
    server: EmbeddingServer, folder: Path
) -> None:
    server.refused = ["Leave"]
    async with opened(server, folder) as knowledge_base:
        assert await knowledge_base.settled() == ""
        assert documents(await find(knowledge_base, "鸭子")) == ["duck.md"]
        assert documents(await find(knowledge_base, "days of leave")) == ["leave.md"]
        asked = len(server.requests)
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
    assert len(server.requests) == asked


async def test_a_slow_endpoint_is_not_waited_for(server: EmbeddingServer, folder: Path) -> None:
    async with opened(server, folder, query_seconds=1) as knowledge_base:
        await knowledge_base.assistants()
        server.fault = hang
        found = await find(knowledge_base, "pump oil")  # this also begins to embed

    assert documents(found) == ["pump.md"]
    assert "did not finish within 1 seconds" in found.failures[EMBEDDINGS]


async def test_other_vectors_than_before_are_made_anew(
    server: EmbeddingServer, folder: Path
) -> None:
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
    server.size = 16
    async with opened(server, folder) as knowledge_base:
        await knowledge_base.settled()
        assert documents(await find(knowledge_base, "pump oil")) == ["pump.md"]
        await knowledge_base.settled()
        assert documents(await find(knowledge_base, "鸭子")) == ["duck.md"]


async def test_failures_that_may_pass_are_tried_again(server: EmbeddingServer) -> None:
    async def fail_twice(request: Request, reply: Reply) -> None:
        if len(server.requests) == 2:
            server.fault = None
        await fail(request, reply)

    server.fault = fail_twice
    asked = embedder(server)
    try:
        vectors = await asked.passages(["duck", "pump"])
    finally:
        await asked.aclose()

    expected = vector("duck")
    assert vectors[0].tolist() == pytest.approx([each / 1.04**0.5 for each in expected])
    assert len(server.requests) == 3


async def test_nothing_but_refusals_is_an_error(server: EmbeddingServer) -> None:
    server.refused = [""]
    asked = embedder(server)
    try:
        with pytest.raises(ModelError, match="refused the request"):
            await asked.passages(["duck", "pump"])
    finally:
        await asked.aclose()
