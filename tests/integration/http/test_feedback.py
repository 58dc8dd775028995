"""Feedback over HTTP: readers give it, operators look through it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from chatbot.history.local import LocalChatHistory
from chatbot.ports import Ports
from chatbot.settings import Settings
from graphs import Chatbot
from serving.http.app import create_app
from tests.integration.http.ports import InMemoryKnowledgeBase, scripted
from tests.integration.http.running_app import running_app
from tests.integration.http.service import quotes
from tests.integration.http.test_users import Guarded


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    keys = tmp_path_factory.mktemp("keys")
    made = Guarded(url="", keys=keys)
    for user in ("ann", "bob", "root"):
        made.key(user)

    @asynccontextmanager
    async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
        async with LocalChatHistory(":memory:") as history:
            model = scripted(quotes, hello="general_chat")
            knowledge = InMemoryKnowledgeBase([], [])
            yield Chatbot(Ports(history=history, knowledge=knowledge, model=model))

    settings = Settings(auth_keys_dir=keys, operators="root", turns_per_minute=0)
    with running_app(create_app(settings, open_bot=open_bot)) as url:
        yield Guarded(url=url, keys=keys, made=made.made)


def ask_and_rate(client: httpx.Client, session: str, thumb: str | None, comment: str) -> str:
    """Return the id of a turn that was asked and rated."""
    client.post("/api/chat", json={"question": "hello", "session_id": session})
    [turn] = client.get(f"/api/sessions/{session}").json()["turns"]
    path = f"/api/sessions/{session}/turns/{turn['id']}/feedback"
    assert client.post(path, json={"thumb": thumb, "comment": comment}).status_code == 200
    return str(turn["id"])


def test_an_operator_sees_what_all_readers_think(guarded: Guarded) -> None:
    with guarded.signed_in("ann") as ann, guarded.signed_in("bob") as bob:
        first = ask_and_rate(ann, "s", "down", "错了")
        second = ask_and_rate(bob, "s", "down", "wrong")
        third = ask_and_rate(bob, "t", "up", "right")
        ask_and_rate(bob, "u", None, "")
        assert ann.get("/api/feedback").status_code == 403
        assert httpx.get(f"{guarded.url}/api/feedback").status_code == 401
    with guarded.signed_in("root") as root:

        def listed(**parameters: Any) -> dict[str, Any]:
            response = root.get("/api/feedback", params=parameters)
            assert response.status_code == 200
            found: dict[str, Any] = response.json()
            return found

        bad = listed()
        assert [each["turn"]["id"] for each in bad["feedback"]] == [second, first]
        assert [each["user_id"] for each in bad["feedback"]] == ["bob", "ann"]
        assert bad["feedback"][1]["turn"]["question"] == "hello"
        assert bad["feedback"][1]["turn"]["feedback"] == {"thumb": "down", "comment": "错了"}
        assert bad["next"] is None
        assert [each["turn"]["id"] for each in listed(thumb="up")["feedback"]] == [third]
        pages, cursor = [], ""
        while cursor is not None:
            page = listed(thumb="all", limit=1, **({"before": cursor} if cursor else {}))
            pages += [each["turn"]["id"] for each in page["feedback"]]
            cursor = page["next"]
        assert pages == [third, second, first]
        assert len(listed(thumb="all", days=1)["feedback"]) == 3
        assert listed(days=0)["feedback"] == []


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({"thumb": "sideways"}, id="no thumb"),
        pytest.param({"days": "-1"}, id="days to come"),
        pytest.param({"days": "nan"}, id="no number of days"),
        pytest.param({"limit": "0"}, id="none"),
        pytest.param({"before": "yesterday"}, id="no cursor"),
    ],
)
def test_what_cannot_be_listed_is_refused(guarded: Guarded, parameters: dict[str, str]) -> None:
    with guarded.signed_in("root") as root:
        response = root.get("/api/feedback", params=parameters)
    assert response.status_code == 422
    assert response.json()["error"]["message"]
