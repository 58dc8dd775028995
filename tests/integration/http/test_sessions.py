"""`/api/sessions`, `/api/assistants`, `/api/suggestions` and `/health`."""

import re

import pytest

from chatbot.domain import Assistant
from tests.integration.http.service import Service


def test_conversation_is_listed_read_and_deleted(service: Service) -> None:
    service.ask("How many days of leave?", session_id="a")
    service.ask("hello", session_id="b")

    listed = service.client.get("/api/sessions").json()["sessions"]
    assert [(each["session_id"], each["title"], each["turns"]) for each in listed] == [
        ("b", "hello", 1),
        ("a", "How many days of leave?", 1),
    ]
    deleted = service.client.delete("/api/sessions/b").json()
    assert deleted == {"session_id": "b", "turns": 1}
    assert service.client.get("/api/sessions/b").status_code == 404
    left = service.client.get("/api/sessions").json()["sessions"]
    assert [each["session_id"] for each in left] == ["a"]


def test_turn_is_read_with_what_its_events_said(service: Service) -> None:
    events = {event["type"]: event["data"] for event in service.ask("leave?", session_id="a")}

    (turn,) = service.client.get("/api/sessions/a").json()["turns"]

    assert turn["question"] == "leave?"
    assert turn["answer"] == events["end"]["full_answer"]
    assert turn["citations"] == events["citations"]
    assert turn["id"] == events["metadata"]["turn_id"]
    for name in ("intent", "reason", "enhanced_query", "assistants", "outcome", "degraded"):
        assert turn[name] == events["end"]["metadata"][name]
    assert turn["usage"]["model"] == events["usage"]["model"]
    assert turn["status"] == "complete"
    assert turn["error"] is None


def test_session_id_may_have_any_letters(service: Service) -> None:
    session_id = "会话%?#&é"
    service.ask("leave?", session_id=session_id)
    (listed,) = service.client.get("/api/sessions").json()["sessions"]

    address = "/api/sessions/%E4%BC%9A%E8%AF%9D%25%3F%23%26%C3%A9"
    assert listed["session_id"] == session_id
    assert len(service.client.get(address).json()["turns"]) == 1


def test_newest_turns_come_with_a_limit(service: Service) -> None:
    for number in range(3):
        service.ask(f"question {number}", session_id="a")

    turns = service.client.get("/api/sessions/a?limit=2").json()["turns"]

    assert [turn["question"] for turn in turns] == ["question 1", "question 2"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        pytest.param("GET", "/api/sessions/none", 404, "not_found", id="unknown session"),
        pytest.param("GET", "/api/sessions/a%20b", 422, "invalid_input", id="blank in the id"),
        pytest.param("DELETE", "/api/sessions/a%0Ab", 422, "invalid_input", id="line break"),
        pytest.param("GET", f"/api/sessions/{'a' * 201}", 422, "invalid_input", id="long id"),
        pytest.param("GET", "/api/sessions?limit=0", 422, "invalid_input", id="limit of 0"),
        pytest.param(
            "GET", "/api/sessions?limit=x", 422, "invalid_input", id="limit is a word"
        ),
        pytest.param(
            "GET", "/api/suggestions?language=fr", 422, "invalid_input", id="language"
        ),
        pytest.param("GET", "/api/nothing", 404, "not_found", id="unknown path"),
        pytest.param("GET", "/page/nothing.js", 404, "not_found", id="unknown file"),
        pytest.param("GET", "/api/chat", 405, "method_not_allowed", id="method of the chat"),
        pytest.param("PUT", "/health", 405, "method_not_allowed", id="method of the health"),
        pytest.param("GET", "/api/broken", 500, "internal", id="fault of ours"),
    ],
)
def test_failures_have_one_shape(
    service: Service, method: str, path: str, status: int, code: str
) -> None:
    response = service.client.request(method, path)

    assert response.status_code == status
    assert response.json().keys() == {"error"}
    error = response.json()["error"]
    assert error.keys() == {"code", "message", "retryable", "retry_after"}
    assert error["code"] == code
    assert error["message"].endswith(".")
    assert "/etc/passwd" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("GET", "/api/sessions/none", None, id="read"),
        pytest.param("PATCH", "/api/sessions/none", {"title": "x"}, id="rename"),
        pytest.param("DELETE", "/api/sessions/none", None, id="delete"),
        pytest.param("GET", "/api/sessions/none/export", None, id="export"),
        pytest.param("POST", "/api/sessions/none/stop", None, id="stop"),
        pytest.param("GET", "/api/sessions/none/events", None, id="follow"),
        pytest.param("GET", "/api/sessions/none/turns/7/why", None, id="why"),
        pytest.param(
            "POST", "/api/sessions/none/turns/7/feedback", {"thumb": "up"}, id="feedback"
        ),
        pytest.param("GET", "/api/documents/none", None, id="document"),
        pytest.param("GET", "/api/images/none.png", None, id="image"),
    ],
)
def test_what_does_not_exist_is_not_found(
    service: Service, method: str, path: str, body: object
) -> None:
    response = service.client.request(method, path, json=body)

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


def test_history_that_cannot_be_read_is_worth_another_try(service: Service) -> None:
    service.history.degraded = "gone"

    response = service.client.get("/api/sessions/a")

    assert response.status_code == 503
    assert response.json()["error"] == {
        "code": "history_unavailable",
        "message": "The history cannot be read.",
        "retryable": True,
        "retry_after": None,
    }


def test_assistants_are_listed(service: Service) -> None:
    assert service.client.get("/api/assistants").json() == {
        "assistants": [
            {"id": "a1", "name": "Handbook", "description": "Leave, pay and benefits."}
        ]
    }


def test_suggestions_are_about_what_is_found(service: Service) -> None:
    service.knowledge.known = [
        Assistant(
            id="a1", name="Handbook", description="Rules: leave, pay. 规定：年假、薪酬。"
        ),
        Assistant(id="a2", name="Empty", description="cars, trains"),
    ]

    english = service.client.get("/api/suggestions").json()["suggestions"]
    chinese = service.client.get("/api/suggestions?language=zh").json()["suggestions"]

    assert english == [
        {"question": "What should I know about leave?", "assistant": "Handbook"},
        {"question": "What can I look up in “Empty”?", "assistant": "Empty"},
        {"question": "What should I know about pay?", "assistant": "Handbook"},
    ]
    assert [each["question"] for each in chinese] == [
        "关于年假，有哪些内容？",
        "在“Empty”里可以查到什么？",
        "关于薪酬，有哪些内容？",
    ]


def test_no_suggestions_while_the_knowledge_base_is_away(service: Service) -> None:
    service.knowledge.down = "RAGFlow cannot be reached."
    assert service.client.get("/api/suggestions").json() == {"suggestions": []}

    service.knowledge.down = ""
    assert service.client.get("/api/suggestions").json()["suggestions"]


def test_health_names_model_and_version(service: Service) -> None:
    health = service.client.get("/health").json()

    assert health["status"] == "ok"
    assert health["degraded"] == {}
    assert health["model"] == "scripted-1"
    assert health["version"]


def test_health_gives_the_reason_of_each_degraded_part(service: Service) -> None:
    service.knowledge.down = "RAGFlow cannot be reached."
    service.history.degraded = "MongoDB cannot be reached."

    response = service.client.get("/health")

    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["degraded"] == {
        "knowledge": "RAGFlow cannot be reached.",
        "history": "MongoDB cannot be reached.",
    }


def test_metrics_count_what_happened(service: Service) -> None:
    service.ask("leave?", session_id="a")
    response = service.client.get("/api/metrics")

    assert response.headers["content-type"].startswith("text/plain")
    assert 'chatbot_turns_total{intent="' in response.text
    assert re.search(r"chatbot_turn_seconds_count [1-9]", response.text)
