"""An answer goes on for whoever lost the connection: here, and in another worker."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.http.workers import Workers, workers
from tests.servers.model import Brain, answer, call

WORDS = [f"word{number} " for number in range(30)]
WHOLE = "".join(WORDS)


@pytest.fixture(name="two", scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    brain = Brain(
        routes={"slowly": call("general_chat"), "quickly": call("general_chat")},
        answers={
            "slowly": answer(WORDS, delay=0.07),
            "quickly": answer("Done."),
        },
    )
    with workers(tmp_path_factory.mktemp("two"), brain, count=2) as running:
        yield running


def frames(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each event with its id."""
    number = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data: "):
            yield number, json.loads(line[6:])


def begin(client: httpx.Client, session: str, *, until: int) -> tuple[str, str]:
    """Ask, leave after `until` pieces, and return the last id and what was said."""
    body = {"question": "slowly", "session_id": session, "on_disconnect": "continue"}
    said = ""
    with client.stream("POST", "/api/chat", json=body) as response:
        for number, event in frames(response):
            if event["type"] == "content":
                said += event["data"]
                until -= 1
                if until == 0:
                    return number, said
    pytest.fail("the answer ended too soon")


@pytest.mark.parametrize("worker", [0, 1], ids=["the same worker", "another worker"])
def test_rest_comes_after_a_broken_connection(two: Workers, worker: int) -> None:
    session = f"rest-{worker}"
    last, said = begin(two.clients[0], session, until=3)

    headers = {"Last-Event-ID": last}
    address = f"/api/sessions/{session}/events"
    with two.clients[worker].stream("GET", address, headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        events = [event for _, event in frames(response)]

    rest = "".join(event["data"] for event in events if event["type"] == "content")
    assert said + rest == WHOLE
    assert [event["type"] for event in events if event["type"] != "content"] == ["usage", "end"]
    assert events[-1]["data"]["full_answer"] == WHOLE


@pytest.mark.parametrize("worker", [0, 1], ids=["the same worker", "another worker"])
def test_page_that_was_loaded_again_gets_all_of_it(two: Workers, worker: int) -> None:
    session = f"all-{worker}"
    begin(two.clients[0], session, until=3)

    with two.clients[worker].stream("GET", f"/api/sessions/{session}/events") as response:
        events = [event for _, event in frames(response)]

    said = "".join(event["data"] for event in events if event["type"] == "content")
    assert said == WHOLE
    (metadata,) = (event["data"] for event in events if event["type"] == "metadata")
    assert metadata["session_id"] == session
    assert metadata["original_query"] == "slowly"
    assert events[-1]["type"] == "end"


@pytest.mark.parametrize("worker", [0, 1], ids=["the same worker", "another worker"])
def test_answer_that_has_ended_meanwhile_is_told_to_its_end(two: Workers, worker: int) -> None:
    session = f"ended-{worker}"
    last, said = begin(two.clients[0], session, until=3)
    with two.clients[0].stream("GET", f"/api/sessions/{session}/events") as response:
        response.read()

    headers = {"Last-Event-ID": last}
    address = f"/api/sessions/{session}/events"
    with two.clients[worker].stream("GET", address, headers=headers) as response:
        events = [event for _, event in frames(response)]

    rest = "".join(event["data"] for event in events if event["type"] == "content")
    assert said + rest == WHOLE


def test_nothing_goes_on_where_nothing_runs(two: Workers) -> None:
    two.clients[0].post("/api/chat", json={"question": "quickly", "session_id": "quick"})
    for client in two.clients:
        assert client.get("/api/sessions/quick/events").status_code == 204
        assert client.get("/api/sessions/unknown/events").status_code == 404
        after = {"Last-Event-ID": "turn:1:1"}
        assert client.get("/api/sessions/unknown/events", headers=after).status_code == 404


@pytest.mark.parametrize("id_", ["7", "a:b:c", "x" * 300, "t:1:1:1", "t:-1:0"])
def test_id_of_no_event_is_refused(two: Workers, id_: str) -> None:
    headers = {"Last-Event-ID": id_}
    response = two.clients[0].get("/api/sessions/s/events", headers=headers)
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "invalid_input"


def test_answer_stops_with_its_reader_unless_it_is_to_go_on(two: Workers) -> None:
    client = two.clients[0]
    body = {"question": "slowly", "session_id": "left"}
    with client.stream("POST", "/api/chat", json=body) as response:
        next(event for _, event in frames(response) if event["type"] == "content")
    (turn,) = client.get("/api/sessions/left").json()["turns"]
    assert turn["status"] == "stopped"


def test_many_read_one_answer(two: Workers) -> None:
    begin(two.clients[0], "many", until=1)
    read: list[str] = []

    def follow(client: httpx.Client) -> None:
        with client.stream("GET", "/api/sessions/many/events") as response:
            read.append(list(frames(response))[-1][1]["data"]["full_answer"])

    readers = [threading.Thread(target=follow, args=[client]) for client in two.clients * 2]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert read == [WHOLE] * 4


@pytest.mark.parametrize("worker", [0, 1], ids=["the same worker", "another worker"])
def test_answer_is_stopped_from_any_worker(two: Workers, worker: int) -> None:
    session = f"stopped-{worker}"
    body = {"question": "slowly", "session_id": session}
    events: list[dict[str, Any]] = []
    with two.clients[0].stream("POST", "/api/chat", json=body) as response:
        for _, event in frames(response):
            events.append(event)
            if [each["type"] for each in events].count("content") == 2 and event[
                "type"
            ] != "end":
                stopped = two.clients[worker].post(f"/api/sessions/{session}/stop").json()

    assert stopped == {"session_id": session, "turns": 1}
    assert events[-1]["type"] == "end"
    assert events[-1]["data"]["finish_reason"] == "stopped"
    (turn,) = two.clients[worker].get(f"/api/sessions/{session}").json()["turns"]
    assert turn["status"] == "stopped"
    assert turn["error"] is None
    assert WHOLE.startswith(turn["answer"])
    assert 0 < len(turn["answer"]) < len(WHOLE)
    assert two.clients[0].post(f"/api/sessions/{session}/stop").json()["turns"] == 0
