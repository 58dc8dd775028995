"""The traces of turns over the real adapters, whose services fail in every way."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from tests.servers.chatbot import free_port
from tests.servers.model import Brain, ModelServer, answer, call, refuse
from tests.servers.traces import Run, TraceSink, trace_sink
from tests.trajectories import Trajectory, tracing

ROUTED = ("load_history", "route", "route > router (early)")
LOOK_UP = Brain(route=call("knowledge_base", '{"assistants": []}'))
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

QUESTION, REPLY = "Wo liegt 青蛙池塘?", "在村子后面 behind the village"

Opener = Callable[..., AbstractAsyncContextManager[Chatbot]]


@pytest.fixture(scope="module")
def sink() -> Iterator[TraceSink]:
    with trace_sink() as opened:
        yield opened


@pytest.fixture
def opened(sink: TraceSink, tmp_path: Path) -> Iterator[Opener]:
    """Return what opens a chatbot whose turns are traced."""

    @asynccontextmanager
    async def opening(model: ModelServer, **choices: Any) -> AsyncIterator[Chatbot]:
        usual: dict[str, Any] = {
            "chatbot_data_dir": tmp_path,
            "llm_model": "scripted",
            "openai_base_url": model.base_url,
            "openai_api_key": SecretStr("k"),
            "prefetch": 0,
        }
        async with open_chatbot(Settings(**{**usual, **choices})) as bot:
            yield bot

    with tracing(sink.url):
        yield opening


def of(sink: TraceSink, turn_id: str) -> Trajectory:
    return Trajectory(sink.wait_for(turn_id))


async def test_mongodb_is_away(sink: TraceSink, opened: Opener) -> None:
    uri = SecretStr(f"mongodb://127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=300")
    with ModelServer(Brain()) as model:
        async with opened(model, mongodb_uri=uri) as bot:
            turn_id = (await bot.ask("Hello")).metadata["turn_id"]
    trace = of(sink, turn_id)
    trace.goes(*ROUTED, "answer", "answer > answer", "save_turn")
    trace.has(degraded=["history"], status="complete", model="scripted", endpoint="scripted")
    assert trace.facts["usage"]["output_tokens"] > 0


async def test_ragflow_is_away(sink: TraceSink, opened: Opener) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    chosen = {"ragflow_base_url": address, "ragflow_api_key": SecretStr("ragflow-k")}
    with ModelServer(LOOK_UP) as model:
        async with opened(model, **chosen) as bot:
            turn_id = (await bot.ask("How many days of leave?")).metadata["turn_id"]
    trace = of(sink, turn_id)
    trace.goes(*ROUTED, "enhance_query", "retrieve", "answer", "save_turn")
    trace.has(degraded=["knowledge"], intent="knowledge_base", status="complete")


async def test_an_endpoint_is_away(sink: TraceSink, opened: Opener, tmp_path: Path) -> None:
    away = f"http://127.0.0.1:{free_port()}/v1"
    with ModelServer(Brain()) as model:
        file = tmp_path / "models.toml"
        file.write_text(
            f'[[endpoint]]\nname = "away"\nmodel = "m"\nbase_url = "{away}"\nweight = 1000\n'
            f'[[endpoint]]\nname = "there"\nmodel = "m"\nbase_url = "{model.base_url}"\n',
            encoding="utf-8",
        )
        async with opened(model, models_file=file, llm_model=None) as bot:
            # Whichever is tried first: in the first turn or the second it is the one away.
            turn_ids = [(await bot.ask("Hello")).metadata["turn_id"] for _ in range(2)]
            kept = {t.id: t.record for t in await bot.turns("default")}
    for turn_id in turn_ids:
        trace = of(sink, turn_id)
        trace.has(endpoint="there", status="complete", attempts=kept[turn_id]["attempts"])
    assert bot.endpoints()[0]["name"] == "away"


async def test_no_endpoint_answers(sink: TraceSink, opened: Opener) -> None:
    with ModelServer([refuse(401, "bad key")]) as model:
        async with opened(model) as bot:
            events = [event async for event in bot.stream("Hello")]
    assert events[-1]["type"] == "error"
    [told] = [event["data"] for event in events if event["type"] == "metadata"]
    trace = of(sink, told["turn_id"])
    trace.has(status="failed", error="model_auth", degraded=["router"])
    assert "answer (failed)" in trace.steps
    assert "answer > answer (failed)" in trace.steps


async def test_an_answer_in_a_form(sink: TraceSink, opened: Opener) -> None:
    said = iter(["no JSON at all", json.dumps({"n": 7})])
    brain = Brain(answers={})

    def reply(request: Any) -> Any:
        return brain(request) if "general_chat" in request.tools else answer(next(said))

    with ModelServer(reply) as model:
        async with opened(model) as bot:
            found = await bot.ask("How many?", response_schema=SCHEMA)
    assert found.text == '{"n": 7}'
    trace = of(sink, found.metadata["turn_id"])
    trace.goes(*ROUTED, "answer", "answer > answer", "answer > answer", "save_turn")


@pytest.mark.parametrize(
    ("variables", "hidden", "shown"),
    [
        pytest.param({"HIDE_INPUTS": "true"}, QUESTION, REPLY, id="questions"),
        pytest.param({"HIDE_INPUTS": "True"}, QUESTION, REPLY, id="questions (Python)"),
        pytest.param({"HIDE_OUTPUTS": "yes"}, REPLY, QUESTION, id="answers"),
        pytest.param({"HIDE_METADATA": "1"}, "a-user", QUESTION, id="metadata"),
    ],
)
async def test_what_is_to_be_hidden_does_not_leave(
    tmp_path: Path, variables: dict[str, str], hidden: str, shown: str
) -> None:
    brain = Brain(
        route=call("knowledge_base", json.dumps({"assistants": [], "question": QUESTION})),
        answer=REPLY,
    )
    with trace_sink() as own, ModelServer(brain) as model, tracing(own.url, **variables):
        settings = Settings(
            chatbot_data_dir=tmp_path,
            llm_model="scripted",
            openai_base_url=model.base_url,
            openai_api_key=SecretStr("k"),
        )
        async with open_chatbot(settings) as bot:
            for _ in range(2):  # the first turn stands in the prompts of the second
                await bot.ask(QUESTION, user_id="a-user", session_id="s")
            own.wait_for_roots(2)
    sent = own.raw.decode()
    assert shown in sent
    assert hidden not in sent
    assert json.dumps(hidden)[1:-1] not in sent


@pytest.mark.parametrize(("rate", "traces"), [("0", 0), ("1", 4)])
async def test_a_part_of_the_turns_is_traced(tmp_path: Path, rate: str, traces: int) -> None:
    with (
        trace_sink() as own,
        ModelServer(Brain()) as model,
        tracing(own.url, TRACING_SAMPLING_RATE=rate),
    ):
        settings = Settings(
            chatbot_data_dir=tmp_path,
            llm_model="scripted",
            openai_base_url=model.base_url,
            openai_api_key=SecretStr("k"),
        )
        async with open_chatbot(settings) as bot:
            for _ in range(4):
                await bot.ask("Hello")
        roots: list[Run] = own.wait_for_roots(traces)
    assert len(roots) == traces
