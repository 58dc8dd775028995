import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.files import named
from chatbot.knowledge.ragflow import RagflowTransport
from chatbot.knowledge.ragflow.creation import assistant_over, dataset_named
from chatbot.knowledge.ragflow.ingest import Ingestion, Progress
from tests.integration.knowledge.ragflow import opened
from tests.servers.loopback import Reply, Request
from tests.servers.ragflow import RagflowServer, Version
from tests.servers.ragflow_faults import FAULTS, Fault
from tests.servers.ragflow_knowledge import CREATED, Chat, Dataset, Document

VERSIONS: list[Version] = ["0.22", "0.27"]


@asynccontextmanager
async def transport_to(server: RagflowServer) -> AsyncIterator[RagflowTransport]:
    transport = RagflowTransport(
        server.url, server.key, timeout_seconds=30, retry_seconds=(0.01,), recheck_seconds=0.01
    )
    try:
        yield transport
    finally:
        await transport.close()


async def ingest(
    server: RagflowServer, files: dict[str, Path], *, timeout_seconds: float = 30
) -> tuple[dict[str, tuple[str, str]], list[Progress]]:
    """Return how each file ended, and all that was reported."""
    reports: list[Progress] = []
    async with transport_to(server) as transport:
        ingestion = Ingestion(
            transport=transport,
            files=files,
            dataset="手册",
            report=reports.append,
            poll_seconds=0.01,
            timeout_seconds=timeout_seconds,
        )
        ended = await ingestion.run()
    return {each.name: (each.state, each.message) for each in ended}, reports


def uploads(server: RagflowServer) -> int:
    return sum(
        request.method == "POST" and request.path.endswith("/documents")
        for request in server.requests
    )


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "年假.md").write_text("年假十五天。\n\n可结转。", "utf-8")
    (tmp_path / "travel.md").write_text("Travel expenses are reimbursed.", "utf-8")
    return named([tmp_path])


@pytest.mark.parametrize("version", VERSIONS)
async def test_files_become_searchable(version: Version, files: dict[str, Path]) -> None:
    with RagflowServer([], version=version) as server:
        ended, reports = await ingest(server, files)
        assert ended == {"travel.md": ("done", ""), "年假.md": ("done", "")}
        (dataset,) = server.datasets.values()
        assert dataset.name == "手册"
        assert {document.name for document in dataset.documents} == set(files)
        async with transport_to(server) as transport:
            await assistant_over(transport, "新助手", dataset.id)
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search("年假", assistants=assistants, limit=1)
    assert findings.passages[0].document == "年假.md"
    states = [report.state for report in reports if report.name == "年假.md"]
    assert states == ["waiting", "uploading", "parsing", "done"]
    assert [report.fraction for report in reports if report.name == "年假.md"][2:] == [0.5, 1.0]


async def test_what_is_there_already_is_not_uploaded_again(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        await ingest(server, files)
        ended, _ = await ingest(server, files)
        assert set(ended.values()) == {("unchanged", "")}
        assert uploads(server) == 2


async def test_a_changed_file_takes_the_place_of_the_old_one(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        await ingest(server, files)
        files["travel.md"].write_text("Travel is over.", "utf-8")
        ended, _ = await ingest(server, files)
        assert ended == {"travel.md": ("done", ""), "年假.md": ("unchanged", "")}
        (dataset,) = server.datasets.values()
        assert sorted(document.name for document in dataset.documents) == sorted(files)


@pytest.mark.parametrize(
    ("text", "state"), [("aaaa", "unchanged"), ("bbbb", "done")], ids=["same", "other"]
)
async def test_a_newer_file_of_the_same_size_is_compared(
    tmp_path: Path, text: str, state: str
) -> None:
    (tmp_path / "a.md").write_text("aaaa", "utf-8")
    with RagflowServer([]) as server:
        await ingest(server, named([tmp_path]))
        (tmp_path / "a.md").write_text(text, "utf-8")
        later = CREATED / 1000 + 3600
        os.utime(tmp_path / "a.md", (later, later))
        for document in next(iter(server.datasets.values())).documents:
            document.created = CREATED
        ended, _ = await ingest(server, named([tmp_path]))
    assert ended == {"a.md": (state, "")}


async def test_failures_are_told_in_the_words_of_ragflow(tmp_path: Path) -> None:
    for name in ("good.md", "broken.pdf", "odd.zzz"):
        (tmp_path / name).write_text("text", "utf-8")
    (tmp_path / "empty.md").touch()
    files = named([tmp_path, tmp_path / "gone.md"])
    with RagflowServer([]) as server:
        server.documents.broken["broken.pdf"] = "[ERROR]Internal server error while chunking"
        ended, _ = await ingest(server, files)
    states = {name: state for name, (state, _) in ended.items()}
    assert states.pop("good.md") == "done"
    assert set(states.values()) == {"failed"}
    messages = {name: message for name, (_, message) in ended.items()}
    assert messages["broken.pdf"] == "[ERROR]Internal server error while chunking"
    assert messages["odd.zzz"] == "odd.zzz: This type of file has not been supported yet!"
    assert messages["empty.md"] == "The file is empty."
    assert "cannot be read" in messages["gone.md"]


async def test_a_stopped_ingestion_goes_on_without_uploading_twice(
    files: dict[str, Path],
) -> None:
    with RagflowServer([]) as server:
        server.fail("/chunks", "stall", times=1)
        running = asyncio.create_task(ingest(server, files))
        while not server.asked("/chunks"):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ended, _ = await ingest(server, files)
        assert set(ended.values()) == {("done", "")}
        assert uploads(server) == 2


async def test_an_upload_that_is_under_way_is_not_repeated(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def slow(request: Request, reply: Reply) -> None:
            loop.call_soon_threadsafe(arrived.set)
            await asyncio.sleep(0.3)  # RAGFlow stores the file meanwhile
            (dataset,) = server.datasets.values()
            await server.documents.upload(request, reply, {"dataset": dataset.id})

        await ingest(server, {})
        server.fail(
            "/documents", lambda request, reply: _only_post(server, request, reply, slow)
        )
        running = asyncio.create_task(ingest(server, files))
        await arrived.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        server.heal()
        ended, _ = await ingest(server, files)
        assert set(ended.values()) == {("done", "")}
        await asyncio.sleep(0.4)
        (dataset,) = server.datasets.values()
        assert sorted(document.name for document in dataset.documents) == sorted(files)


async def _only_post(
    server: RagflowServer, request: Request, reply: Reply, fault: Fault
) -> None:
    if request.method == "POST":
        await fault(request, reply)
    else:
        (dataset,) = server.datasets.values()
        await server.documents.list_documents(request, reply, {"dataset": dataset.id})


async def test_files_that_are_too_large_are_told_as_such(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        await ingest(server, {})

        async def refuse(_: Request, reply: Reply) -> None:
            await reply.send(b"<html>413</html>", status=413, content_type="text/html")

        server.fail(
            "/documents", lambda request, reply: _only_post(server, request, reply, refuse)
        )
        ended, _ = await ingest(server, files)
    assert {state for state, _ in ended.values()} == {"failed"}
    assert all("takes nothing that large" in message for _, message in ended.values())


async def test_a_ragflow_that_goes_away_is_not_tried_with_each_file(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"{number}.md").write_text("text", "utf-8")
    with RagflowServer([]) as server:
        await ingest(server, {})
        server.fail("/healthz", "html 502")
        server.fail(
            "/documents",
            lambda request, reply: _only_post(server, request, reply, FAULTS["reset"]),
        )
        ended, _ = await ingest(server, named([tmp_path]))
        assert uploads(server) < 20
    assert {state for state, _ in ended.values()} == {"failed"}


async def test_parsing_that_runs_already_is_waited_for(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        await ingest(server, files)
        (dataset,) = server.datasets.values()
        dataset.documents[0].run, dataset.documents[0].progress = "RUNNING", 0.0
        ended, _ = await ingest(server, files)
        assert sorted(state for state, _ in ended.values()) == ["done", "unchanged"]


async def test_parsing_without_end_is_given_up(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        server.documents.stuck = True
        ended, _ = await ingest(server, files, timeout_seconds=0.1)
    assert {state for state, _ in ended.values()} == {"failed"}
    assert all("Run it again" in message for _, message in ended.values())


async def test_a_hiccup_while_waiting_is_not_the_end(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        await ingest(server, {})
        (dataset,) = server.datasets.values()
        dataset.documents = [
            Document(name=name, blob=path.read_bytes(), run="RUNNING", progress=0.0)
            for name, path in files.items()
        ]
        seen = 0

        async def hiccup(request: Request, reply: Reply) -> None:
            nonlocal seen
            seen += 1
            if 1 < seen < 4:
                await reply.send(b"<html>502</html>", status=502, content_type="text/html")
            else:
                ids = {"dataset": dataset.id}
                await server.documents.list_documents(request, reply, ids)

        server.fail("/documents", hiccup)
        ended, _ = await ingest(server, files)
    assert set(ended.values()) == {("done", "")}


async def test_a_dataset_that_is_refused_is_an_error(files: dict[str, Path]) -> None:
    with RagflowServer([]) as server:
        server.fail("/datasets", "no authorization")
        with pytest.raises(KnowledgeBaseError, match="no authorization"):
            await ingest(server, files)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_dataset_is_found_by_its_name(version: Version) -> None:
    with RagflowServer(version=version) as server:
        async with transport_to(server) as transport:
            first = await dataset_named(transport, "walden")
            again = await dataset_named(transport, "new")
            assert await dataset_named(transport, "new") == again != first
            assert len(server.datasets) == 4


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_assistant_that_exists_gets_the_dataset_too(version: Version) -> None:
    datasets = [Dataset(name="a"), Dataset(name="b")]
    with RagflowServer([Chat(name="A", datasets=datasets[:1])], version=version) as server:
        server.datasets[datasets[1].id] = datasets[1]
        async with transport_to(server) as transport:
            for _ in range(2):
                assistant = await assistant_over(transport, "A", datasets[1].id)
        (chat,) = server.chats
    assert (assistant.id, chat.dataset_ids) == (chat.id, [each.id for each in datasets])


async def test_an_assistant_over_nothing_parsed_is_refused_in_the_words_of_ragflow() -> None:
    with RagflowServer([]) as server:
        async with transport_to(server) as transport:
            dataset_id = await dataset_named(transport, "empty")
            with pytest.raises(KnowledgeBaseError, match="doesn't own parsed file"):
                await assistant_over(transport, "A", dataset_id)


def test_files_of_one_name_keep_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("a/x/n.md", "b/x/n.md", "b/m.md", ".git/n.md", "a/.hidden"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", "utf-8")
    names = {name: path.relative_to(tmp_path) for name, path in named([tmp_path]).items()}
    assert names == {
        "a - x - n.md": Path("a/x/n.md"),
        "b - x - n.md": Path("b/x/n.md"),
        "m.md": Path("b/m.md"),
    }
