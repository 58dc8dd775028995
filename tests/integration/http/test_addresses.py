"""Where the services are is told to those who run the chatbot, and to nobody else."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from serving.auth.keys import create_key
from serving.http import create_app
from tests.integration.http.running_app import running_app
from tests.integration.http.service import events_of

HOST = "127.0.0.2"  # where nothing answers; the app itself is at another address
MODELS = [
    f"[[endpoint]]\nmodel = '{name}'\nbase_url = 'http://{HOST}:9/v{number}'\n"
    for number, name in enumerate(("one", "two"), 1)
]
ACCEPT = "application/json, text/event-stream"
COMPLETION = {"model": "chatbot", "messages": [{"role": "user", "content": "Hello?"}]}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@dataclass(frozen=True, kw_only=True)
class Away:
    """A service with users, whose model, knowledge base and history are all away."""

    ann: httpx.Client
    root: httpx.Client


@pytest.fixture(name="away", params=[1, 2], ids=["one endpoint", "two endpoints"])
def running_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Away]:
    models = tmp_path / "models.toml"
    models.write_text("".join(MODELS[: request.param]), encoding="utf-8")
    settings = Settings(
        chatbot_data_dir=tmp_path,
        auth_keys_dir=tmp_path / "keys",
        operators="root",
        models_file=models,
        ragflow_base_url=f"http://{HOST}:9",
        ragflow_api_key=SecretStr("k"),
        mongodb_uri=SecretStr(f"mongodb://{HOST}:9"),
    )
    with running_app(create_app(settings)) as url, ExitStack() as stack:
        clients = [
            stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=20))
            for user in ("ann", "root")
            for key in [create_key(tmp_path / "keys", user)]
            for headers in [{"Authorization": f"Bearer {key}", "Accept": ACCEPT}]
        ]
        yield Away(ann=clients[0], root=clients[1])


def test_no_user_is_told_where_the_services_are(
    away: Away, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"question": "Who wrote Walden?", "session_id": "s", "route": "knowledge_base"}
    looked_up = away.ann.post("/api/chat", json=body)
    said = away.ann.post("/api/chat", json={**body, "route": "general_chat"})
    events = {event["type"]: event["data"] for event in events_of(said.text)}
    [turn, _] = away.ann.get("/api/sessions/s").json()["turns"]
    search = {"name": "search_knowledge", "arguments": {"query": "Walden"}}
    told = [
        looked_up.text,
        said.text,
        *(
            reply.text
            for reply in (
                away.ann.get("/api/sessions/s"),
                away.ann.get(f"/api/sessions/s/turns/{turn['id']}/why"),
                away.ann.get("/api/sessions/s/export"),
                away.ann.get("/api/assistants"),
                away.ann.get("/health"),
                away.ann.get("/health/ready"),
                away.ann.post("/api/mcp", json={**CALL, "params": search}),
                away.ann.post("/v1/chat/completions", json=COMPLETION),
                away.ann.post("/v1/chat/completions", json={**COMPLETION, "stream": True}),
            )
        ),
    ]

    assert events["error"]["code"] == "model_connection"
    assert {each["part"] for each in turn["degraded"]} >= {"history", "knowledge"}
    assert [each for each in told if HOST in each] == []
    assert f"one at {HOST}:9" in [getattr(each, "endpoint", "") for each in caplog.records]
    assert f"Cannot connect to host {HOST}:9" in caplog.text
    endpoints = away.root.get("/health").json()["endpoints"]
    assert endpoints[0]["address"] == f"http://{HOST}:9/v1"
