"""No key, header or connection string is in a trace, whoever echoes it and whatever fails."""

import uuid
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from chatbot.errors import ChatbotError
from chatbot.settings import Settings
from graphs import open_chatbot
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said
from tests.servers.chatbot import free_port
from tests.servers.loopback import Reply, Request
from tests.servers.model import Brain, ChatRequest, ModelServer, Script, call, refuse
from tests.servers.mongod import Mongod
from tests.servers.ragflow import RagflowServer, denied
from tests.servers.tools import ToolServer
from tests.servers.traces import trace_sink
from tests.trajectories import KEY, Traces, tracing

FIELDS = Settings.model_fields
SETTINGS = [name for name in FIELDS if "SecretStr" in str(FIELDS[name].annotation)]
OTHERS = (
    *("models_file", "models_address", "mcp_header", "mcp_token", "mcp_address"),
    *("mongodb_option", "embedding_base_url"),
)
SECRETS: Mapping[str, str] = {
    name: f"secret-of-{name}-{uuid.uuid4().hex}" for name in (*SETTINGS, *OTHERS)
}


class EchoingTools(ToolServer):
    """Tells whoever calls a tool how it signed in."""

    async def _handle(self, request: Request, reply: Reply) -> None:
        signed = [request.headers.get(name, "") for name in ("authorization", "x-api-key")]
        self._header = " ".join(signed)
        await super()._handle(request, reply)

    def _result(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        result = super()._result(method, given)
        if method == "tools/call":
            result["content"][0]["text"] += f" for {self._header}"
        return result


async def echo(request: Request, reply: Reply) -> None:
    await denied(reply, f"{request.headers['authorization']} is no key of mine")


def refuse_with_key(request: ChatRequest) -> Script:
    return refuse(HTTPStatus.UNAUTHORIZED, f"Incorrect API key provided: {request.key}")


def answer_with_all(request: ChatRequest) -> Script:
    """Route, call a tool once, then give away all there is."""
    if "knowledge_base" in request.tools:
        return call("knowledge_base", {"assistants": []})
    if request.tools and not any(m["role"] == "tool" for m in request.body["messages"]):
        return call(request.tools[0], {"city": "Paris"})
    return Brain(answer="I know " + " and ".join(SECRETS.values()))(request)


def settings_of(folder: Path, model: ModelServer, tools: ToolServer, **chosen: Any) -> Settings:
    file = folder / "models.toml"
    login = {name: f"://somebody:{secret}@" for name, secret in SECRETS.items()}
    model_url = model.base_url.replace("://", login["models_address"])
    file.write_text(
        f'[[endpoint]]\nmodel = "m"\nbase_url = "{model_url}"\n'
        f'api_key = "{SECRETS["models_file"]}"\n\n'
        f'[mcp.weather]\nurl = "{tools.url}/mcp?token={SECRETS["mcp_address"]}"\n'
        f'headers = {{ Authorization = "Bearer {SECRETS["mcp_token"]}", '
        f'X-Api-Key = "{SECRETS["mcp_header"]}" }}\n',
        encoding="utf-8",
    )
    secret = {name: SecretStr(SECRETS[name]) for name in SETTINGS if name != "mongodb_uri"}
    option = f"tlsCertificateKeyFilePassword={SECRETS['mongodb_option']}"
    usual = {
        "chatbot_data_dir": folder / "data",
        "models_file": file,
        "embedding_base_url": f"http{login['embedding_base_url']}127.0.0.1:{free_port()}",
        "mongodb_uri": SecretStr(
            f"mongodb{login['mongodb_uri']}127.0.0.1:{free_port()}/?{option}"
        ),
    }
    return Settings(**{**secret, **usual, **chosen})


@pytest.fixture
def tools() -> Iterator[EchoingTools]:
    with EchoingTools() as server:
        yield server


@pytest.mark.parametrize(
    ("replies", "fault", "expected"),
    [
        pytest.param(answer_with_all, None, "[secret]", id="all are echoed"),
        pytest.param(refuse_with_key, None, "model_auth", id="the model echoes its key"),
        pytest.param(answer_with_all, echo, "knowledge", id="RAGFlow echoes its key"),
    ],
)
async def test_secrets_stay_here(
    tmp_path: Path, tools: EchoingTools, replies: Any, fault: Any, expected: str
) -> None:
    with (
        trace_sink() as sink,
        RagflowServer(key=SECRETS["ragflow_api_key"]) as ragflow,
        ModelServer(replies) as model,
        tracing(sink.url),
    ):
        if fault:
            ragflow.fail("/", fault)
        settings = settings_of(tmp_path, model, tools, ragflow_base_url=ragflow.url)
        async with open_chatbot(settings) as bot:
            for question in ("How is the weather?", "Und morgen, 明天?"):
                events = [event async for event in bot.stream(question, session_id="s")]
                assert events[-1]["type"] in {"end", "error"}
        sink.wait_for_roots(2)
    _assert_kept(sink.raw)
    assert expected.encode() in sink.raw
    if fault is None and replies is answer_with_all:
        assert "晴, 21 °C for [secret] [secret]".encode() in sink.raw


async def test_mongodb_refuses_the_password(
    tmp_path: Path, tools: EchoingTools, mongod: Mongod
) -> None:
    uri = f"mongodb://somebody:{SECRETS['mongodb_uri']}@127.0.0.1:{mongod.port}/"
    with trace_sink() as sink, ModelServer(Brain()) as model, tracing(sink.url):
        settings = settings_of(
            tmp_path, model, tools, mongodb_uri=SecretStr(uri), ragflow_api_key=None
        )
        with pytest.raises(ChatbotError) as refused:  # as it opens, or in the turn
            async with open_chatbot(settings) as bot:
                await bot.ask("Hello")
    assert SECRETS["mongodb_uri"] not in str(refused.value)
    assert SECRETS["mongodb_uri"].encode() not in sink.raw
    assert b"somebody:" not in sink.raw


async def test_what_a_caller_calls_a_secret_stays_here(traces: Traces, bench: Bench) -> None:
    secret = f"of-a-caller-{uuid.uuid4().hex}"
    turn_id = uuid.uuid4()
    chosen = {"openai_api_key": secret, "weather_token": secret, "their_colour": "blue"}
    bench.script(Said(call=Call("general_chat")), Said(["Hello."]))
    graph: Any = bench.bot.graph
    await graph.ainvoke(
        {"messages": [HumanMessage("Hello")]}, {"run_id": turn_id, "configurable": chosen}
    )
    traces.of(str(turn_id)).has(their_colour="blue", openai_api_key="[secret]")
    assert secret.encode() not in traces.sink.raw


async def test_every_secret_of_the_settings_is_looked_for() -> None:
    assert {"openai_api_key", "mongodb_uri", "jwt_secret", "ragflow_api_key"} <= set(SETTINGS)
    annotated = [name for name in FIELDS if name.endswith(("_key", "_secret"))]
    assert set(annotated) <= set(SETTINGS)


def _assert_kept(sent: bytes) -> None:
    assert sent
    for name, secret in {**SECRETS, "langsmith": KEY}.items():
        assert secret.encode() not in sent, name
    assert b"Authorization" not in sent
