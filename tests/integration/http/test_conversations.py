"""Conversations over HTTP with a real store: found, renamed, taken along, explained."""

from collections.abc import Iterator

import httpx
import pytest
from pydantic import SecretStr

from tests.integration.http.workers import Workers, workers
from tests.servers.model import Brain, call


@pytest.fixture(name="client", scope="module")
def client_of_a_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    brain = Brain(
        routes={"leave?": call("knowledge_base", {"assistants": ["Handbook"]})},
        answers={"年假有几天？": "二十五天。"},
        answer="25 days [1].",
    )
    with workers(tmp_path_factory.mktemp("one"), brain) as running:
        yield one(running)


@pytest.fixture(name="away", scope="module")
def client_while_mongodb_is_away(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[httpx.Client]:
    folder, uri = tmp_path_factory.mktemp("away"), SecretStr("mongodb://127.0.0.1:9")
    with workers(folder, Brain(), mongodb_uri=uri) as running:
        yield one(running)


def one(running: Workers) -> httpx.Client:
    (client,) = running.clients
    return client


def ask(client: httpx.Client, question: str, session: str) -> None:
    response = client.post("/api/chat", json={"question": question, "session_id": session})
    assert '"type":"end"' in response.text


def test_what_was_said_is_found(client: httpx.Client) -> None:
    ask(client, "leave?", "found")
    ask(client, "年假有几天？", "found")

    (english,) = client.get("/api/search", params={"text": "25 days"}).json()["matches"]
    (chinese,) = client.get("/api/search", params={"text": "年假"}).json()["matches"]
    nothing = client.get("/api/search", params={"text": "salary"}).json()["matches"]

    assert (english["session_id"], english["turn"]["question"]) == ("found", "leave?")
    assert chinese["turn"]["answer"] == "二十五天。"
    assert nothing == []
    assert client.get("/api/search").status_code == 422
    client.delete("/api/sessions/found")


def test_conversation_gets_another_title(client: httpx.Client) -> None:
    ask(client, "leave?", "renamed")
    renamed = client.patch("/api/sessions/renamed", json={"title": "假期 <b>"})
    listed = client.get("/api/sessions").json()["sessions"]

    assert renamed.json() == {"session_id": "renamed"}
    assert [each["title"] for each in listed if each["session_id"] == "renamed"] == ["假期 <b>"]
    for title in ("", " \n ", "x" * 501):
        refused = client.patch("/api/sessions/renamed", json={"title": title})
        assert refused.status_code == 422
    client.delete("/api/sessions/renamed")


def test_conversation_is_taken_along(client: httpx.Client) -> None:
    ask(client, "leave?", "taken")
    exported = client.get("/api/sessions/taken/export")
    before = client.get("/api/sessions/taken").json()["turns"]

    assert "attachment" in exported.headers["content-disposition"]
    client.delete("/api/sessions/taken")
    body = {"data": exported.json(), "session_id": "brought"}
    imported = client.post("/api/sessions/import", json=body)

    assert (imported.status_code, imported.json()) == (201, {"session_id": "brought"})
    assert client.get("/api/sessions/brought").json()["turns"] == before
    again = client.post("/api/sessions/import", json=body)
    assert again.status_code in {201, 422}
    assert client.get("/api/sessions/brought").json()["turns"] == before
    client.delete("/api/sessions/brought")


@pytest.mark.parametrize("data", [{}, {"turns": 7}, {"format": "other"}, {"session": {}}])
def test_what_is_no_conversation_is_not_brought(
    client: httpx.Client, data: dict[str, object]
) -> None:
    response = client.post("/api/sessions/import", json={"data": data})
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "invalid_input"


def test_why_tells_all_that_was_noted(client: httpx.Client) -> None:
    ask(client, "leave?", "why")
    (turn,) = client.get("/api/sessions/why").json()["turns"]

    told = client.get(f"/api/sessions/why/turns/{turn['id']}/why").json()

    assert told["turn"] == turn
    assert told["record"]["passages"][0]["document"] == "leave.md"
    assert told["record"]["timings"]
    assert client.get("/api/sessions/why/turns/none/why").status_code == 404
    assert client.get(f"/api/sessions/other/turns/{turn['id']}/why").status_code == 404
    client.delete("/api/sessions/why")


def test_answer_is_rated_and_rated_anew(client: httpx.Client) -> None:
    ask(client, "leave?", "rated")
    (turn,) = client.get("/api/sessions/rated").json()["turns"]
    address = f"/api/sessions/rated/turns/{turn['id']}/feedback"
    assert turn["feedback"] is None

    for given in (
        {"thumb": "down", "comment": "不对"},
        {"thumb": "up", "comment": None},
        {"thumb": None, "comment": None},
    ):
        assert client.post(address, json=given).json() == given
        (rated,) = client.get("/api/sessions/rated").json()["turns"]
        assert rated == {**turn, "feedback": given}
    for wrong in ({"thumb": "sideways"}, {"comment": "x" * 2001}, {"stars": 5}):
        assert client.post(address, json=wrong).status_code == 422
    elsewhere = address.replace("rated", "other")
    assert client.post(elsewhere, json={"thumb": "up"}).status_code == 404
    client.delete("/api/sessions/rated")


def test_citation_opens_its_document(client: httpx.Client) -> None:
    ask(client, "leave?", "cited")
    (turn,) = client.get("/api/sessions/cited").json()["turns"]
    (citation,) = turn["citations"]

    opened = client.get(citation["url"].partition("#")[0])

    assert opened.status_code == 200
    assert "25 days" in opened.text
    assert opened.headers["content-type"] == "text/plain; charset=utf-8"
    assert opened.headers["x-content-type-options"] == "nosniff"
    assert opened.headers["content-security-policy"].startswith("default-src 'none'")
    client.delete("/api/sessions/cited")


@pytest.mark.parametrize(
    "path",
    [
        "none.md",
        "../data/x",
        "%2e%2e/%2e%2e/etc/passwd",
        "Handbook",
        "Handbook/",
        "%00",
        "a" * 999,
    ],
)
def test_what_no_citation_names_is_not_opened(client: httpx.Client, path: str) -> None:
    assert client.get(f"/api/documents/{path}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/sessions/none"),
        ("PATCH", "/api/sessions/none"),
        ("GET", "/api/sessions/none/export"),
        ("GET", "/api/sessions/none/turns/t/why"),
    ],
)
def test_conversation_that_nobody_had_is_not_found(
    client: httpx.Client, method: str, path: str
) -> None:
    body = {"title": "x"} if method == "PATCH" else None
    response = client.request(method, path, json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_user_forgets_everything(client: httpx.Client) -> None:
    ask(client, "leave?", "one")
    ask(client, "leave?", "two")
    assert client.delete("/api/sessions").json() == {"sessions": 2}
    assert client.get("/api/sessions").json() == {"sessions": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        pytest.param("PATCH", "s", {"title": "x"}, 503, id="rename"),
        pytest.param("GET", "s/export", None, 503, id="export"),
        pytest.param("GET", "s/turns/7/why", None, 503, id="why"),
        pytest.param("POST", "s/turns/7/feedback", {"thumb": "up"}, 503, id="feedback"),
        pytest.param("DELETE", "s", None, 200, id="delete, which is done later"),
        pytest.param("GET", "s", None, 404, id="read, as the page does what is not begun"),
    ],
)
def test_while_mongodb_is_away_nobody_knows_what_there_is(
    away: httpx.Client, method: str, path: str, body: object, status: int
) -> None:
    response = away.request(method, f"/api/sessions/{path}", json=body)

    assert response.status_code == status
    if status == httpx.codes.SERVICE_UNAVAILABLE:
        error = response.json()["error"]
        assert (error["code"], error["retryable"]) == ("history_unavailable", True)
