"""The contract server is one that the SDK itself, unchanged, works with."""

import httpx
import pytest
import ragflow_sdk
from ragflow_sdk import RAGFlow

from tests.servers.ragflow import KEY, RagflowServer, Version

OLD = tuple(int(part) for part in ragflow_sdk.__version__.split(".")[:2]) < (0, 25)
VERSION: Version = "0.22" if OLD else "0.27"


def test_the_sdk_lists_assistants_and_datasets() -> None:
    with RagflowServer(version=VERSION) as server:
        sdk = RAGFlow(server.key, server.url)
        assert [chat.name for chat in sdk.list_chats()] == [
            "员工手册",
            "瓦尔登湖",
            "X200 manual",
        ]
        assert [dataset.name for dataset in sdk.list_datasets(page=2, page_size=2)] == [
            "pump-manual"
        ]
        with pytest.raises(Exception, match="lacks permission"):
            sdk.get_dataset("nope")


def test_the_sdk_retrieves() -> None:
    with RagflowServer(version=VERSION) as server:
        sdk = RAGFlow(server.key, server.url)
        ids = [dataset.id for dataset in sdk.list_datasets()]
        chunks = sdk.retrieve(dataset_ids=ids, question="Who wrote Walden?")
        assert chunks[0].content.startswith("Walden was written by")
        assert sdk.retrieve(dataset_ids=ids, question=" ") == []


def test_the_sdk_uploads_parses_and_downloads() -> None:
    with RagflowServer([], version=VERSION) as server:
        sdk = RAGFlow(server.key, server.url)
        dataset = sdk.create_dataset(name="新")
        (document,) = dataset.upload_documents([{"display_name": "a.md", "blob": b"alpha"}])
        dataset.async_parse_documents([document.id])
        for _ in range(3):
            (listed,) = dataset.list_documents(id=document.id)
        assert listed.run in {"DONE", "3"}
        assert listed.download() == b"alpha"


def test_the_sdk_asks_an_assistant() -> None:
    with RagflowServer(version=VERSION) as server:
        sdk = RAGFlow(server.key, server.url)
        session = sdk.list_chats()[2].create_session(name="s")
        question = "How long does the warranty of the X200 pump last?"
        answer = "".join(message.content for message in session.ask(question, stream=True))
        assert answer.endswith("[ID:0]")


@pytest.mark.parametrize(
    ("header", "status"),
    [
        pytest.param(f"Bearer {KEY}", 200, id="bearer"),
        pytest.param(f"bearer {KEY}", 200, id="small letters"),
        pytest.param(KEY, 200, id="the key alone"),
        pytest.param("Bearer wrong", 401, id="wrong key"),
        pytest.param("", 401, id="none"),
    ],
)
def test_who_may_come_in(header: str, status: int) -> None:
    with RagflowServer(version=VERSION) as server:
        reply = sent(server, "GET", "/chats", header)
    assert (reply.status_code, reply.json()["code"]) == (status, 0 if status == 200 else 401)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        pytest.param("GET", "/nosuch", 404, 404, id="unknown path"),
        pytest.param("DELETE", "/retrieval", 200, 100, id="wrong method"),
        pytest.param(
            "GET", "/chats?page_size=101", 200, 100, id="page of assistants too large"
        ),
        pytest.param(
            "GET", "/datasets?page_size=101", 200, 101, id="page of datasets too large"
        ),
        pytest.param("GET", "/datasets?name=nope", 200, 102, id="unknown dataset"),
        pytest.param("POST", "/chats/nope/sessions", 200, 109, id="unknown assistant"),
    ],
)
def test_errors_have_the_shapes_of_the_newest_server(
    method: str, path: str, status: int, code: int
) -> None:
    with RagflowServer() as server:
        reply = sent(server, method, path, f"Bearer {KEY}")
    assert (reply.status_code, reply.json()["code"]) == (status, code)


def sent(server: RagflowServer, method: str, path: str, header: str) -> httpx.Response:
    return httpx.request(
        method,
        f"{server.url}/api/v1{path}",
        headers={"Authorization": header},
        json={"name": "s"},
        timeout=5,
    )
