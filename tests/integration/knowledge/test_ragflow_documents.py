"""Opening the document behind a citation."""

import asyncio

import pytest

from chatbot.domain import SourceFile
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.ragflow import open_ragflow
from tests.integration.knowledge.ragflow import dataset, opened
from tests.servers.loopback import Reply, Request
from tests.servers.ragflow import RagflowServer, Version
from tests.servers.ragflow_faults import enveloped
from tests.servers.ragflow_knowledge import Chat, Dataset, Document
from tests.stopwatch import Stopwatch


async def document(
    server: RagflowServer, document_id: str, *, timeout_seconds: float = 30
) -> SourceFile | None:
    async with opened(server, timeout_seconds=timeout_seconds) as knowledge_base:
        assistants = await knowledge_base.assistants()
        return await knowledge_base.document(document_id, assistants=assistants)


@pytest.mark.parametrize("version", ["0.22", "0.27"])
async def test_a_citation_opens_its_document(version: Version) -> None:
    with RagflowServer(version=version) as server:
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search(
                "Who wrote Walden?", assistants=assistants, limit=1
            )
            document_id = findings.passages[0].document_id
            file = await knowledge_base.document(document_id, assistants=assistants)
            others = await knowledge_base.document(document_id, assistants=assistants[:1])
    assert file is not None
    assert (file.name, file.media_type) == ("walden.txt", "text/plain")
    assert b"Thoreau" in file.content
    assert others is None


@pytest.mark.parametrize("use", ["passages", "answers"])
async def test_passages_have_the_address_of_their_document(use: str) -> None:
    with RagflowServer() as server:
        async with open_ragflow(server.url, server.key, documents_url="/files") as ragflow:
            assistants = await ragflow.passages.assistants()
            findings = await getattr(ragflow, use).search(
                "How long is the warranty of the X200?", assistants=assistants[2:], limit=3
            )
            *_, manual = findings.passages
            assert manual.url == f"/files/{manual.document_id}#page={manual.location[3:]}"
            given = await ragflow.passages.document(manual.document_id, assistants=assistants)
    assert given is not None
    assert given.name == "pump.pdf"


@pytest.mark.parametrize("document_id", ["0" * 32, "../../a", "a/b", "", "x" * 99, "?id=1"])
async def test_an_unknown_document_is_not_opened(document_id: str) -> None:
    with RagflowServer() as server:
        assert await document(server, document_id) is None


async def test_a_document_of_no_assistant_is_not_opened() -> None:
    secret = Dataset(name="secret", documents=[Document(name="s.md", chunks=["secret"])])
    with RagflowServer() as server:
        server.datasets[secret.id] = secret
        assert await document(server, secret.documents[0].id) is None


async def test_it_is_looked_for_in_all_datasets_but_no_longer_than_needed() -> None:
    datasets = [dataset(f"d{number}", "text") for number in range(40)]
    with RagflowServer([Chat(name="A", datasets=datasets)]) as server:
        del server.datasets[datasets[0].id]  # not ours any more
        found = await document(server, datasets[20].documents[0].id)
        assert len(server.asked("/documents")) < 40
        assert await document(server, datasets[39].documents[0].id) is not None
        assert await document(server, datasets[0].documents[0].id) is None
    assert found is not None
    assert found.name == "d20.md"


async def test_a_dataset_that_cannot_be_asked_hides_no_other() -> None:
    kept, broken = dataset("kept", "text"), dataset("broken", "text")
    with RagflowServer([Chat(name="A", datasets=[broken, kept])]) as server:
        server.fail(f"/datasets/{broken.id}", "html 502")
        found = await document(server, kept.documents[0].id)
        assert found is not None
        with pytest.raises(KnowledgeBaseError, match="502"):
            await document(server, "0" * 32)


@pytest.mark.parametrize(
    ("fault", "kind", "sentence"),
    [
        pytest.param("html login page", "protocol", "RAGFLOW_BASE_URL", id="a page"),
        pytest.param("html 502", "unavailable", "502", id="a proxy's error page"),
        pytest.param("102 not found", "not_found", "not found", id="gone"),
        pytest.param("success without data", "protocol", "no file", id="JSON, not a file"),
        pytest.param("reset", "unavailable", "cannot be reached", id="broken connection"),
        pytest.param("cut body", "unavailable", "cannot be reached", id="cut"),
        pytest.param("stall", "unavailable", "no answer within", id="silence"),
    ],
)
async def test_a_file_that_does_not_come_is_a_typed_error(
    fault: str, kind: str, sentence: str
) -> None:
    with RagflowServer() as server:
        wanted = server.chats[0].datasets[0].documents[0].id
        server.fail(f"/documents/{wanted}", fault)
        seconds = 0.2 if fault == "stall" else 30
        with pytest.raises(KnowledgeBaseError, match=sentence) as caught:
            await document(server, wanted, timeout_seconds=seconds)
    assert caught.value.kind == kind


async def test_a_file_that_never_ends_is_given_up() -> None:
    async def drip(_: Request, reply: Reply) -> None:
        reply.extra.append(("Content-Disposition", "attachment"))
        await reply.start(content_type="application/octet-stream")
        while True:
            await reply.chunk(b"x")
            await asyncio.sleep(0.01)

    with RagflowServer() as server:
        wanted = server.chats[0].datasets[0].documents[0].id
        server.fail(f"/documents/{wanted}", drip)
        stopwatch = Stopwatch()
        with pytest.raises(KnowledgeBaseError, match="no answer within"):
            await document(server, wanted, timeout_seconds=0.1)
        assert stopwatch.seconds() < 2


async def test_a_huge_file_is_not_even_asked_for() -> None:
    with RagflowServer() as server:
        wanted = server.chats[0].datasets[0].documents[0].id
        row = {"id": wanted, "name": "film.mp4", "size": 5 * 2**30}
        server.fail("/documents", enveloped({"code": 0, "data": {"total": 1, "docs": [row]}}))
        with pytest.raises(KnowledgeBaseError, match=r"film\.mp4 is larger than 64 MiB"):
            await document(server, wanted)
        assert not server.asked(f"/documents/{wanted}")
