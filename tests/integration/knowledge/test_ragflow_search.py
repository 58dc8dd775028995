import pytest

from chatbot.domain import Assistant, Findings
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.ragflow import open_ragflow
from chatbot.ports import KnowledgeBase
from tests.integration.knowledge.ragflow import dataset, opened
from tests.servers.ragflow import RagflowServer, Version
from tests.servers.ragflow_knowledge import Chat

VERSIONS: list[Version] = ["0.22", "0.27"]


async def search(server: RagflowServer, question: str, *, limit: int = 5) -> Findings:
    async with opened(server) as knowledge_base:
        assistants = await knowledge_base.assistants()
        return await knowledge_base.search(question, assistants=assistants, limit=limit)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("question", "document", "assistant"),
    [
        ("年假有几天？", "员工手册.md", "员工手册"),
        ("瓦尔登湖的风景怎么样", "瓦尔登湖.txt", "瓦尔登湖"),
        ("Who wrote Walden?", "walden.txt", "瓦尔登湖"),
        ("How long is the warranty of the X200 pump?", "pump.pdf", "X200 manual"),
    ],
)
async def test_the_passage_about_the_question_comes_first(
    version: Version, question: str, document: str, assistant: str
) -> None:
    with RagflowServer(version=version) as server:
        findings = await search(server, question)
    best = findings.passages[0]
    assert (best.document, best.assistant) == (document, assistant)
    scores = [passage.score for passage in findings.passages]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("version", VERSIONS)
async def test_with_nothing_found_the_documents_below_the_threshold_are_named(
    version: Version,
) -> None:
    far = dataset("pumps", "Pumps are cleaned with water.")
    shut = {"similarity_threshold": 0.99}
    with RagflowServer(
        [Chat(name="Pumps", datasets=[far], settings=shut)], version=version
    ) as server:
        findings = await search(server, "Who sells pumps in Peru?")
        server.fail("/retrieval", "html 502")
        with pytest.raises(KnowledgeBaseError):
            await search(server, "Who sells pumps in Peru?")

    assert findings == Findings(passages=[], nearest=("pumps.md",))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("question", ["What about quantum chess?", "量子象棋", "", "  \n"])
async def test_nothing_about_the_question_is_no_error(version: Version, question: str) -> None:
    with RagflowServer(version=version) as server:
        assert await search(server, question) == Findings(
            passages=[] if question.strip() else ()
        )


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_assistant_searches_with_its_own_settings(version: Version) -> None:
    chat = Chat(
        name="A",
        datasets=[dataset("a", "alpha one", "alpha two", "alpha three")],
        settings={
            "similarity_threshold": 0.11,
            "vector_similarity_weight": 0.75,
            "top_n": 2,
            "top_k": 99,
            "rerank_id": "reranker@Xinference",
        },
        prompt_config={"keyword": True, "cross_languages": ["English", "Chinese"]},
    )
    with RagflowServer([chat], version=version) as server:
        findings = await search(server, "alpha")
        body = server.asked("/retrieval")[0].json()
    assert len(findings.passages) == 2
    assert body["dataset_ids"] == chat.dataset_ids
    expected = {
        "question": "alpha",
        "page": 1,
        "page_size": 2,
        "similarity_threshold": 0.11,
        "vector_similarity_weight": 0.75,
        "top_k": 99,
        "rerank_id": "reranker@Xinference",
        "keyword": True,
        "cross_languages": ["English", "Chinese"],
    }
    assert {name: body[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({"top_n": 500}, {"page_size": 100}, id="more than a page"),
        pytest.param({"top_n": 0}, {"page_size": 6}, id="none at all"),
        pytest.param({"top_k": -1}, {"top_k": 1024}, id="a negative number of candidates"),
        pytest.param(
            {"similarity_threshold": None, "vector_similarity_weight": None},
            {"similarity_threshold": 0.2, "vector_similarity_weight": 0.3},
            id="nulls",
        ),
        pytest.param({"similarity_threshold": 0}, {"similarity_threshold": 0}, id="zero"),
        pytest.param({"rerank_id": ""}, {"rerank_id": None}, id="no reranker"),
    ],
)
async def test_settings_that_ragflow_would_refuse_are_corrected(
    settings: dict[str, object], expected: dict[str, object]
) -> None:
    chat = Chat(name="A", datasets=[dataset("a", "alpha")], settings=settings)
    with RagflowServer([chat]) as server:
        await search(server, "alpha")
        body = server.asked("/retrieval")[0].json()
    assert {name: body[name] for name in expected} == expected


@pytest.mark.parametrize("version", VERSIONS)
async def test_datasets_of_different_embeddings_are_asked_separately(version: Version) -> None:
    chat = Chat(
        name="A",
        datasets=[
            dataset("a", "alpha beta", model="bge-m3@Ollama"),
            dataset("b", "alpha", "alpha gamma", model="text-embedding-v4@Tongyi-Qianwen"),
            dataset("c", "alpha delta", model="bge-m3@Ollama"),
        ],
    )
    with RagflowServer([chat], version=version) as server:
        findings = await search(server, "alpha")
        asked = sorted(
            len(request.json()["dataset_ids"]) for request in server.asked("/retrieval")
        )
    assert asked == [1, 2]
    assert {passage.document for passage in findings.passages} == {"a.md", "b.md", "c.md"}
    assert findings.failures == {}


async def test_datasets_are_asked_one_by_one_when_their_embeddings_are_not_known() -> None:
    datasets = [dataset("a", "alpha", model="one"), dataset("b", "alpha", model="two")]
    with RagflowServer([Chat(name="A", datasets=datasets)]) as server:
        server.fail("/datasets", "no authorization")
        findings = await search(server, "alpha")
    assert {passage.document for passage in findings.passages} == {"a.md", "b.md"}


async def test_a_lost_dataset_is_left_out_and_told() -> None:
    lost = dataset("lost", "alpha")
    chat = Chat(name="A", datasets=[lost, dataset("kept", "alpha beta")])
    with RagflowServer([chat]) as server:
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            del server.datasets[lost.id]
            findings = await knowledge_base.search("alpha", assistants=assistants, limit=5)
    assert [passage.document for passage in findings.passages] == ["kept.md"]
    assert "without lost" in findings.failures["A"]


async def test_an_assistant_with_nothing_but_lost_datasets_is_an_error() -> None:
    lost = dataset("lost", "alpha")
    with RagflowServer([Chat(name="A", datasets=[lost])]) as server:
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            del server.datasets[lost.id]
            with pytest.raises(KnowledgeBaseError) as caught:
                await knowledge_base.search("alpha", assistants=assistants, limit=5)
    assert caught.value.kind == "not_found"


async def test_an_assistant_without_datasets_is_named() -> None:
    with RagflowServer([Chat(name="A")]) as server:
        findings = await search(server, "alpha")
    assert findings == Findings(
        passages=[], failures={"A": "The assistant 'A' has no dataset in RAGFlow."}
    )


async def test_an_assistant_that_ragflow_does_not_have_is_an_error() -> None:
    with RagflowServer() as server:
        async with opened(server) as knowledge_base:
            gone = [Assistant(id="gone", name="Gone")]
            with pytest.raises(KnowledgeBaseError, match="Gone") as caught:
                await knowledge_base.search("alpha", assistants=gone, limit=5)
    assert caught.value.kind == "not_found"


async def test_a_passage_of_two_assistants_is_found_once() -> None:
    shared = dataset("a", "alpha")
    chats = [Chat(name="A", datasets=[shared]), Chat(name="B", datasets=[shared])]
    with RagflowServer(chats) as server:
        findings = await search(server, "alpha")
    assert len(findings.passages) == 1


async def test_no_more_passages_than_asked_for() -> None:
    with RagflowServer([Chat(name="A", datasets=[dataset("a", *"abcde")])]) as server:
        assert len((await search(server, "b c d e", limit=2)).passages) == 2


@pytest.mark.parametrize("shape", ["raw_chunks", "chunks_as_dict", "null_scores"])
async def test_chunks_of_every_shape_are_read(shape: str) -> None:
    with RagflowServer() as server:
        setattr(server, shape, True)
        findings = await search(server, "X200 pump warranty")
    best = findings.passages[0]
    assert (best.document, best.location) == ("pump.pdf", "p. 1")
    assert best.document_id
    assert best.score == 0 if shape == "null_scores" else best.score > 0.4


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("{x} ${y} {{z}} %s", id="template syntax"),
        pytest.param("\x00\x1b[31m\u202e年假", id="control characters"),
        pytest.param("\ud800 年假", id="half of a surrogate pair"),
        pytest.param("年假" * 25_000, id="50,000 characters"),
        pytest.param('"}, "dataset_ids": ["x"', id="JSON"),
    ],
)
async def test_any_question_is_only_a_question(question: str) -> None:
    with RagflowServer() as server:
        await search(server, question)
        bodies = [request.json() for request in server.asked("/retrieval")]
    assert {len(body["dataset_ids"]) for body in bodies} == {1}
    assert all(len(body["question"]) <= 4_000 for body in bodies)


async def test_assistants_can_be_used_when_the_datasets_cannot_be_listed() -> None:
    with RagflowServer() as server:
        server.fail("/datasets", "no authorization")
        findings = await search(server, "年假有几天")
    assert findings.passages[0].document == "员工手册.md"


@pytest.mark.parametrize("use", ["passages", "answers"])
async def test_both_uses_are_one_port(use: str) -> None:
    with RagflowServer() as server:
        async with open_ragflow(server.url, server.key) as ragflow:
            knowledge_base: KnowledgeBase = getattr(ragflow, use)
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search(
                "How long is the warranty of the X200?", assistants=assistants, limit=2
            )
        asked = bool(server.asked("/completions"))
    assert findings.passages[0].text.startswith("The warranty of")
    assert asked is (use == "answers")
