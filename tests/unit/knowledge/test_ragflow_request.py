from collections.abc import Callable

import pytest
from ragflow_sdk import Chat, DataSet, Session

from chatbot.knowledge.ragflow.request import DescribingRAGFlow, Request, described

RAGFLOW = DescribingRAGFlow("key", "http://127.0.0.1")


@pytest.mark.parametrize(
    ("call", "method", "path"),
    [
        pytest.param(lambda: RAGFLOW.list_chats(page=2), "GET", "/chats", id="list chats"),
        pytest.param(RAGFLOW.list_datasets, "GET", "/datasets", id="list datasets"),
        pytest.param(
            lambda: RAGFLOW.retrieve(dataset_ids=["a"], question="q"),
            "POST",
            "/retrieval",
            id="retrieve",
        ),
        pytest.param(
            lambda: RAGFLOW.create_dataset(name="n"), "POST", "/datasets", id="create dataset"
        ),
        pytest.param(
            lambda: Chat(RAGFLOW, {"id": "c"}).create_session(name="s"),
            "POST",
            "/chats/c/sessions",
            id="create session",
        ),
        pytest.param(
            lambda: Session(RAGFLOW, {"id": "s", "chat_id": "c"}).ask("q", stream=True),
            "POST",
            "/chats/c/completions",
            id="ask, which is a generator",
        ),
        pytest.param(
            lambda: DataSet(RAGFLOW, {"id": "d"}).async_parse_documents(["x"]),
            "POST",
            "/datasets/d/chunks",
            id="parse",
        ),
        pytest.param(lambda: RAGFLOW.delete_chats(ids=["c"]), "DELETE", "/chats", id="delete"),
        pytest.param(lambda: RAGFLOW.put("/a", {}), "PUT", "/a", id="put"),
        pytest.param(lambda: RAGFLOW.patch("/a", {}), "PATCH", "/a", id="patch"),
    ],
)
def test_the_sdk_describes_its_requests(
    call: Callable[[], object], method: str, path: str
) -> None:
    request = described(call)
    assert (request.method, request.path) == (method, path)


def test_parameters_are_written_as_the_sdk_would_write_them() -> None:
    request = Request(
        method="GET", path="/", params={"a": 1, "b": None, "c": [1, 2], "d": True}
    )
    assert request.query == [("a", "1"), ("c", "1"), ("c", "2"), ("d", "True")]


def test_a_call_that_sends_nothing_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="sends no request"):
        described(lambda: "nothing")
