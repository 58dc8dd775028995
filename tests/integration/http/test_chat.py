"""`POST /api/chat`."""


from tests.integration.http.conftest import Service


def test_answer_streams_as_events_with_citations(service: Service) -> None:
    events = service.ask("How many days of leave?", session_id="s")

    types = [event["type"] for event in events]
    assert types[-1] == "end"
    assert "".join(e["data"] for e in events if e["type"] == "content") == (
        "25 days of leave [1]."
    )
    (cited,) = next(event["data"] for event in events if event["type"] == "citations")
    assert cited["number"] == 1
    assert cited["document"] == "leave.md"
    assert cited["score"] == 0.87
