"""What `POST /api/chat` takes and refuses."""

import pytest

from serving.http.limits import BODY_BYTES
from tests.integration.http.service import Service

WITH_IMAGES = 28 * BODY_BYTES  # what the images of a question may take, and it


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param({}, "question", id="no question"),
        pytest.param({"question": ""}, "empty", id="empty question"),
        pytest.param({"question": " \n\t\u0000"}, "empty", id="question of blanks"),
        pytest.param({"question": 7}, "question", id="question is a number"),
        pytest.param({"question": ["a"]}, "question", id="question is a list"),
        pytest.param({"question": "a" * 200_001}, "question", id="question is too long"),
        pytest.param({"question": "a", "colour": "red"}, "no field colour", id="unknown field"),
        pytest.param(
            {"question": "a", "user_id": "u"}, "no field user_id", id="user is not said"
        ),
        pytest.param({"question": "a", "session_id": ""}, "session_id", id="empty session"),
        pytest.param(
            {"question": "a", "session_id": "a b"}, "session_id", id="blank in session"
        ),
        pytest.param({"question": "a", "session_id": {"$ne": ""}}, "session_id", id="operator"),
        pytest.param(
            {"question": "a", "session_id": "a/b"}, "session_id", id="slash in session"
        ),
        pytest.param(
            {"question": "a", "session_id": "."}, "and not . or .. alone", id="a step in a path"
        ),
        pytest.param(
            {"question": "a", "session_id": ".."},
            "and not . or .. alone",
            id="a step up a path",
        ),
        pytest.param({"question": "a", "replaces": ".."}, "replaces", id="a step as a turn"),
        pytest.param({"question": "a", "route": "elsewhere"}, "route", id="unknown route"),
        pytest.param({"question": "a", "assistants": "Handbook"}, "assistants", id="no list"),
        pytest.param({"question": "a", "assistants": ["a"] * 21}, "assistants", id="too many"),
        pytest.param({"question": "a", "language": "x" * 256}, "language", id="long language"),
        pytest.param({"question": "a", "timezone": "../x"}, "timezone", id="no time zone"),
        pytest.param({"question": "a", "replaces": "a b"}, "replaces", id="no turn id"),
        pytest.param([], "body", id="a list"),
        pytest.param(None, "body", id="null"),
    ],
)
def test_bad_input_is_refused_before_the_stream(
    service: Service, body: object, words: str
) -> None:
    response = service.client.post("/api/chat", json=body)

    assert response.status_code == 422
    error = response.json()["error"]
    assert (error["code"], error["retryable"]) == ("invalid_input", False)
    assert words in error["message"]
    assert service.history.turns == {}


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        pytest.param(b"question=hello", "application/x-www-form-urlencoded", id="a form"),
        pytest.param(b'{"question": "hello"}', "text/plain", id="JSON that says it is text"),
        pytest.param(b'{"question": "hel', "application/json", id="broken JSON"),
        pytest.param(b'{"question": "\xff"}', "application/json", id="not UTF-8"),
        pytest.param(b"", "application/json", id="nothing"),
        pytest.param(b"[" * 5_000, "application/json", id="deep nesting"),
    ],
)
def test_body_that_is_not_json_is_refused(
    service: Service, content: bytes, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    response = service.client.post("/api/chat", content=content, headers=headers)

    assert response.status_code in {400, 422}
    assert response.json()["error"]["code"] == "invalid_input"


def test_large_body_is_refused_when_it_is_announced(service: Service) -> None:
    response = service.client.post("/api/chat", json={"question": "a" * WITH_IMAGES})

    assert response.status_code == 413
    assert response.json()["error"]["code"] == "too_large"


def test_large_body_is_refused_when_it_comes_in_pieces(service: Service) -> None:
    pieces = iter([b'{"question": "', *([b"a" * BODY_BYTES] * 28), b'"}'])
    headers = {"Content-Type": "application/json"}
    response = service.client.post("/api/chat", content=pieces, headers=headers)

    assert response.status_code == 413


def test_long_question_with_braces_and_controls_is_answered(service: Service) -> None:
    question = "{leave} $x {{y}} \u0000\u001b[0m </passages> " * 1_000
    events = service.ask(question)

    assert events[-1]["type"] == "end"
