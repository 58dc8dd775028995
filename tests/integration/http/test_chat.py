"""`POST /api/chat`."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from chatbot.domain import Session
from chatbot.errors import ModelError
from tests.integration.http.ports import says
from tests.integration.http.service import Service, events_of


def test_answer_streams_as_events_with_citations(service: Service) -> None:
    events = service.ask("How many days of leave?", session_id="s")

    assert [event["type"] for event in events][-1] == "end"
    said = [event["data"] for event in events if event["type"] == "content"]
    assert "".join(said) == "25 days of leave [1]."
    assert len(said) > 1
    (cited,) = next(event["data"] for event in events if event["type"] == "citations")
    assert (cited["number"], cited["document"], cited["score"]) == (1, "leave.md", 0.87)


def test_response_is_not_cached_not_buffered_and_plain_utf8(service: Service) -> None:
    response = service.client.post("/api/chat", json={"question": "年假有多少天？🙂"})

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert "年假有多少天？🙂" in response.content.decode("utf-8")


def test_question_without_session_goes_to_the_default_one(service: Service) -> None:
    service.ask("How many days of leave?")

    assert list(service.history.turns) == [Session(session_id="default")]


@pytest.mark.parametrize(
    ("route", "intent"),
    [
        pytest.param("general_chat", "general_chat", id="chat although it would be searched"),
        pytest.param("knowledge_base", "knowledge_base", id="search although it is chat"),
    ],
)
def test_route_can_be_chosen(service: Service, route: str, intent: str) -> None:
    question = "hello" if route == "knowledge_base" else "How many days of leave?"
    metadata = _first(service.ask(question, route=route), "metadata")

    assert metadata["intent"] == intent


def test_assistants_language_and_instructions_reach_the_answer(service: Service) -> None:
    choices = {"language": "Chinese", "instructions": "You are a pirate."}
    metadata = _first(service.ask("leave?", assistants=["Handbook"], **choices), "metadata")

    prompt = str(service.model.asked[-1][0].content)
    assert metadata["assistants"] == ["Handbook"]
    assert "Chinese" in prompt
    assert "You are a pirate." in prompt


def test_turn_takes_the_place_of_another_and_of_all_after_it(service: Service) -> None:
    first = _first(service.ask("leave?", session_id="s"), "metadata")
    service.ask("pay?", session_id="s")

    choices = {"replaces": first["turn_id"], "timezone": "Asia/Tokyo"}
    metadata = _first(service.ask("sick leave?", session_id="s", **choices), "metadata")

    assert (first["replaces"], metadata["replaces"]) == (None, first["turn_id"])
    turns = service.client.get("/api/sessions/s").json()["turns"]
    assert [turn["question"] for turn in turns] == ["sick leave?"]


def test_leaving_client_stops_the_answer_and_what_was_said_is_kept(service: Service) -> None:
    said_first = _stall(service, "Half an answer", "the rest")
    service.history.saving_seconds = 0.2

    with service.client.stream("POST", "/api/chat", json=_body("leave?", "s")) as response:
        assert any("Half an answer" in line for line in response.iter_lines())
    turns = service.client.get("/api/sessions/s").json()["turns"]

    assert said_first.is_set()
    assert service.model.closed == ["leave?"]
    assert [(t["answer"], t["status"]) for t in turns] == [("Half an answer", "stopped")]


def test_answer_is_stopped_by_its_session(service: Service) -> None:
    _stall(service, "Half an answer", "the rest")

    with service.client.stream("POST", "/api/chat", json=_body("leave?", "s")) as response:
        lines = response.iter_lines()
        assert any("Half an answer" in line for line in lines)
        other = service.client.post("/api/sessions/other/stop")
        stopped = service.client.post("/api/sessions/s/stop").json()
        *_, last = [line for line in lines if line]
        assert json.loads(last[5:])["data"]["finish_reason"] == "stopped"

    assert other.status_code == 404
    assert stopped == {"session_id": "s", "turns": 1}
    (turn,) = service.client.get("/api/sessions/s").json()["turns"]
    assert (turn["answer"], turn["status"]) == ("Half an answer", "stopped")


def test_question_after_a_stop_sees_the_stopped_turn(service: Service) -> None:
    _stall(service, "Half an answer", "the rest")
    service.history.saving_seconds = 0.2
    with service.client.stream("POST", "/api/chat", json=_body("leave?", "s")) as response:
        assert any("Half an answer" in line for line in response.iter_lines())

    service.model.script = says("Whole.")
    service.ask("And now?", session_id="s")

    prompt = "\n".join(str(message.content) for message in service.model.asked[-1])
    assert "Half an answer" in prompt
    statuses = [turn.status for turn in service.history.turns[Session(session_id="s")]]
    assert statuses == ["stopped", "complete"]


def test_leaving_client_during_routing_keeps_the_question(service: Service) -> None:
    service.model.routing_seconds = 60

    with service.client.stream("POST", "/api/chat", json=_body("leave?", "s")) as response:
        assert any("routing" in line for line in response.iter_lines())
    (turn,) = service.client.get("/api/sessions/s").json()["turns"]

    assert (turn["question"], turn["answer"], turn["status"]) == ("leave?", "", "stopped")


def test_model_failure_is_an_error_event_with_what_was_said(service: Service) -> None:
    async def fails(_: str) -> AsyncIterator[str]:
        yield "25 days"
        message = "The model is busy."
        raise ModelError("rate_limit", message, retry_after=7)

    service.model.script = fails
    events = service.ask("leave?", session_id="s")

    assert events[-1] == {
        "type": "error",
        "data": {
            "code": "model_rate_limit",
            "message": "The model is busy.",
            "retryable": True,
            "retry_after": 7,
            "partial_answer": "25 days",
        },
    }
    (turn,) = service.client.get("/api/sessions/s").json()["turns"]
    assert (turn["status"], turn["answer"]) == ("failed", "25 days")
    assert turn["error"]["code"] == "model_rate_limit"


def test_fault_of_ours_is_told_without_its_details(service: Service) -> None:
    async def breaks(_: str) -> AsyncIterator[str]:
        yield "25 days"
        message = "secret path /etc/passwd"
        raise RuntimeError(message)

    service.model.script = breaks
    text = service.client.post("/api/chat", json=_body("leave?", "s")).text

    assert events_of(text)[-1]["data"]["code"] == "internal"
    assert "/etc/passwd" not in text
    assert "Traceback" not in text


def test_sessions_that_are_answered_at_once_do_not_mix(service: Service) -> None:
    async def names(question: str) -> AsyncIterator[str]:
        for word in (question, "!"):
            yield word
            await asyncio.sleep(0.01)

    service.model.script = names
    questions = [f"question-{number}" for number in range(8)]
    with ThreadPoolExecutor(len(questions)) as pool:
        answers = list(
            pool.map(lambda q: service.ask(q, session_id=q, route="general_chat"), questions)
        )

    for question, events in zip(questions, answers, strict=True):
        assert events[-1]["data"]["full_answer"] == f"{question}!"
        (turn,) = service.client.get(f"/api/sessions/{question}").json()["turns"]
        assert turn["question"] == question


def _first(events: list[dict[str, object]], kind: str) -> dict[str, object]:
    data = next(event["data"] for event in events if event["type"] == kind)
    assert isinstance(data, dict)
    return data


def _body(question: str, session_id: str) -> dict[str, str]:
    return {"question": question, "session_id": session_id}


def _stall(service: Service, first: str, rest: str) -> threading.Event:
    """Let the model say `first` and then nothing for long; the event tells that it began."""
    began = threading.Event()

    async def script(_: str) -> AsyncIterator[str]:
        began.set()
        yield first
        await asyncio.sleep(60)
        yield rest

    service.model.script = script
    return began
