"""Signing in, and what one user may see of another: nothing."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import jwt
import pytest

from chatbot.domain import Assistant, Passage
from chatbot.limits import Limits
from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.auth.keys import create_key, revoke_key
from serving.http import create_app
from tests.integration.http.ports import (
    InMemoryChatHistory,
    InMemoryKnowledgeBase,
    scripted,
)
from tests.integration.http.running_app import running_app
from tests.integration.http.service import HANDBOOK, PASSAGE, events_of, quotes

SECRET = "a secret that is long enough for HS256"
PAY = Assistant(id="a2", name="Pay", description="What everybody earns.")
PAY_PASSAGE = Passage(
    id="p2",
    text="The director earns 9,000.",
    document="pay.md",
    document_id="d2",
    assistant="Pay",
    score=0.9,
)


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A service where users sign in."""

    url: str
    keys: Path
    made: dict[str, str] = field(default_factory=dict)

    def key(self, user: str, assistants: list[str] | None = None) -> str:
        if user not in self.made:
            self.made[user] = create_key(self.keys, user, assistants=assistants)
        return self.made[user]

    @contextmanager
    def signed_in(
        self, user: str, assistants: list[str] | None = None
    ) -> Iterator[httpx.Client]:
        headers = {"Authorization": f"Bearer {self.key(user, assistants)}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=10) as client:
            yield client


@pytest.fixture(name="guarded", scope="module")
def guarded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    keys = tmp_path_factory.mktemp("keys")
    guarded = Guarded(url="", keys=keys)
    for user in ("ann", "bob", "root", "often", "parallel"):
        guarded.key(user)
    guarded.key("handbook-reader", ["Handbook"])
    knowledge = InMemoryKnowledgeBase([HANDBOOK, PAY], [PASSAGE, PAY_PASSAGE])
    ports = Ports(
        history=InMemoryChatHistory(),
        knowledge=knowledge,
        model=scripted(quotes, hello="general_chat"),
        limits=Limits(question_characters=1000),
    )

    @asynccontextmanager
    async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
        yield Chatbot(ports)

    settings = Settings(
        auth_keys_dir=keys,
        jwt_secret=SECRET,
        operators="root",
        turns_per_minute=3,
        turns_at_once=1,
    )
    with running_app(create_app(settings, open_bot=open_bot)) as url:
        yield Guarded(url=url, keys=keys, made=guarded.made)


ROUTES = [
    ("POST", "/api/chat"),
    ("GET", "/api/sessions"),
    ("GET", "/api/sessions/s"),
    ("DELETE", "/api/sessions/s"),
    ("POST", "/api/sessions/s/stop"),
    ("GET", "/api/assistants"),
    ("GET", "/api/suggestions"),
    ("GET", "/api/images/x.png"),
    ("GET", "/api/metrics"),
    ("GET", "/api/me"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"Authorization": "Bearer cb_0_wrong"}, id="a wrong key"),
        pytest.param({"Authorization": "Basic YTpi"}, id="another scheme"),
        pytest.param({"X-API-Key": "x"}, id="a wrong key in its own header"),
        pytest.param({"Cookie": "chatbot_token=x"}, id="a wrong cookie"),
        pytest.param({"Cookie": "chatbot_token"}, id="half a cookie"),
    ],
)
def test_every_route_wants_to_know_who_asks(
    guarded: Guarded, method: str, path: str, headers: dict[str, str]
) -> None:
    body = {"question": "hello"} if method == "POST" and path == "/api/chat" else None
    response = httpx.request(method, guarded.url + path, json=body, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "unauthorized"
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_the_page_and_the_health_need_no_user(guarded: Guarded) -> None:
    assert httpx.get(f"{guarded.url}/").status_code == 200
    health = httpx.get(f"{guarded.url}/health")
    assert health.status_code == 200
    # Who is not known learns that it works, not how it is built.
    assert set(health.json()) == {"status"}


def test_what_one_user_said_no_other_sees(guarded: Guarded) -> None:
    with guarded.signed_in("ann") as ann, guarded.signed_in("bob") as bob:
        ask = {"question": "leave?", "session_id": "private"}
        assert ann.post("/api/chat", json=ask).status_code == 200
        assert bob.get("/api/sessions/private").status_code == 404
        assert bob.get("/api/sessions").json() == {"sessions": []}
        (turn,) = ann.get("/api/sessions/private").json()["turns"]
        of_turn = f"/api/sessions/private/turns/{turn['id']}"
        for method, path, body in (
            ("GET", "/api/sessions/private/events", None),
            ("GET", "/api/sessions/private/export", None),
            ("PATCH", "/api/sessions/private", {"title": "mine"}),
            ("POST", "/api/sessions/private/stop", None),
            ("GET", f"{of_turn}/why", None),
            ("POST", f"{of_turn}/feedback", {"thumb": "down"}),
            ("DELETE", "/api/sessions/private", None),
        ):
            assert bob.request(method, path, json=body).status_code == 404, (method, path)
        assert len(ann.get("/api/sessions/private").json()["turns"]) == 1
        ann.delete("/api/sessions/private")


def test_signed_token_names_the_user(guarded: Guarded) -> None:
    claims = {"sub": "token-user", "exp": time.time() + 60, "assistants": ["Handbook"]}
    token = jwt.encode(claims, SECRET, algorithm="HS256")
    me = httpx.get(f"{guarded.url}/api/me", headers={"Authorization": f"bearer {token}"})
    assert me.json() == {
        "user_id": "token-user",
        "signed_in": True,
        "operator": False,
        "assistants": ["Handbook"],
    }


def test_page_signs_in_and_out_with_a_cookie_that_no_script_reads(guarded: Guarded) -> None:
    with httpx.Client(base_url=guarded.url) as browser:
        refused = browser.post("/api/sign-in", json={"token": "cb_1_2"})
        assert refused.status_code == 401
        accepted = browser.post("/api/sign-in", json={"token": f" {guarded.key('ann')}\n"})
        cookie = accepted.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert browser.get("/api/me").json()["user_id"] == "ann"
        # A page of another site may make the browser send the cookie, but is refused.
        elsewhere = {"Origin": "https://evil.example"}
        assert browser.get("/api/me", headers=elsewhere).status_code == 403
        assert browser.post("/api/sign-out").status_code == 204
        assert browser.get("/api/me").status_code == 401


def test_key_that_is_revoked_stops_working_by_itself(guarded: Guarded) -> None:
    key = create_key(guarded.keys, "gone")
    headers = {"X-API-Key": key}
    deadline = time.monotonic() + 20
    while httpx.get(f"{guarded.url}/api/me", headers=headers).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    revoke_key(guarded.keys, key.split("_")[1])
    while httpx.get(f"{guarded.url}/api/me", headers=headers).status_code != 401:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_metrics_are_for_operators(guarded: Guarded) -> None:
    with guarded.signed_in("ann") as ann, guarded.signed_in("root") as root:
        refused = ann.get("/api/metrics")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert root.get("/api/metrics").status_code == 200


def test_user_sees_and_asks_only_the_assistants_that_are_theirs(guarded: Guarded) -> None:
    with guarded.signed_in("handbook-reader") as reader:
        known = reader.get("/api/assistants").json()["assistants"]
        assert [each["name"] for each in known] == ["Handbook"]
        asked = {"question": "What does the director earn?", "assistants": ["Pay"]}
        events = events_of(reader.post("/api/chat", json=asked).text)
    assert "9,000" not in str(events)
    (metadata,) = (each["data"] for each in events if each["type"] == "metadata")
    assert metadata["assistants"] == ["Handbook"]
    assert [each["part"] for each in metadata["degraded"]] == ["assistants"]


def test_turns_a_minute_have_a_limit_that_says_when(guarded: Guarded) -> None:
    with guarded.signed_in("often") as client:
        answers = [client.post("/api/chat", json={"question": "hello"}) for _ in range(4)]
    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    error = answers[-1].json()["error"]
    assert (error["code"], error["retryable"]) == ("too_many_requests", True)
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 60


def test_question_has_a_limit(guarded: Guarded) -> None:
    with guarded.signed_in("ann") as ann:
        response = ann.post("/api/chat", json={"question": "a" * 1001})
    assert response.status_code == 413
    assert "1000" in response.json()["error"]["message"]
