"""Whatever is sent, the answer is a stream or an error in our shape."""

from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.http.service import Service, events_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=5
)
FIELDS = st.sampled_from(
    ["session_id", "assistants", "route", "language", "instructions", "timezone", "replaces"]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
quickly = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quickly
@given(body=VALUES)
def test_any_json_is_refused_in_one_shape(service: Service, body: Any) -> None:
    response = service.client.post("/api/chat", json=body)

    assert response.status_code in {200, 422}
    if response.status_code == 422:
        assert response.json()["error"]["code"] == "invalid_input"


@quickly
@given(question=TEXTS, choices=st.dictionaries(FIELDS, VALUES | TEXTS, max_size=3))
def test_any_choices_give_one_closing_event_or_are_refused(
    service: Service, question: str, choices: dict[str, Any]
) -> None:
    response = service.client.post("/api/chat", json={"question": question, **choices})

    if response.status_code == 200:
        closing = [e for e in events_of(response.text) if e["type"] in {"end", "error"}]
        assert len(closing) == 1
        assert closing[0]["data"].get("code") != "internal"
    else:
        assert response.json()["error"]["code"] == "invalid_input"


@quickly
@given(session_id=TEXTS)
def test_any_session_is_read_or_refused(service: Service, session_id: str) -> None:
    address = f"/api/sessions/{quote(session_id, safe='')}"

    for method in ("GET", "DELETE"):
        response = service.client.request(method, address)
        assert response.status_code in {200, 307, 404, 405, 422}
