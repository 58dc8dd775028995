import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from serving.cli.doctor.examination import examine_services, load
from tests.integration.cli.examined import DEAD, examined, of_part, states, words
from tests.servers.embeddings import EmbeddingServer
from tests.servers.model import (
    ChatRequest,
    ModelServer,
    Script,
    answer,
    call,
    delta,
    frames,
    hang,
    refuse,
)
from tests.servers.tools import ToolServer

USAGE = {
    "object": "chat.completion.chunk",
    "choices": [],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}


def endpoint(folder: Path, model: ModelServer, **fields: str | int) -> Path:
    """Write a file of models with this one endpoint and return it."""
    lines = ["[[endpoint]]", "model = 'scripted'", f"base_url = '{model.base_url}'"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    file = folder / "models.toml"
    file.write_text("\n".join(lines))
    return file


def well(request: ChatRequest) -> Script:
    return call("note", {"word": "OK"}) if request.tools else answer("OK", usage=(5, 1))


def without_tools(request: ChatRequest) -> Script:
    del request
    return answer("OK", usage=(5, 1))


def without_usage(request: ChatRequest) -> Script:
    return call("note", {"word": "OK"}) if request.tools else answer("OK", usage=None)


def reasoning(request: ChatRequest) -> Script:
    if request.tools:
        return well(request)
    thought = delta(reasoning_content="Hm.")
    return frames([thought, delta("OK"), delta(finish="stop"), USAGE])


def refused(request: ChatRequest) -> Script:
    del request
    return refuse(401, {"error": {"message": "no such key"}})


@pytest.mark.parametrize(
    ("replies", "expected", "said"),
    [
        pytest.param(well, {"ok"}, "first token after", id="works"),
        pytest.param(well, {"ok"}, "/v1 is ready.", id="its state"),
        pytest.param(reasoning, {"ok"}, "It reasons first.", id="reasons"),
        pytest.param(well, {"ok"}, "up to 32,768 tokens at once: a guess", id="its window"),
        pytest.param(without_tools, {"ok", "fail"}, "did not call the tool", id="no tool call"),
        pytest.param(without_usage, {"ok", "warn"}, "no usage", id="no usage"),
        pytest.param(refused, {"fail"}, "key", id="key refused"),
        pytest.param(
            refused,
            {"fail"},
            "/v1 is cooling, 10 s left: the API key was refused",
            id="the state after a refusal",
        ),
    ],
)
async def test_model(
    tmp_path: Path,
    replies: Callable[[ChatRequest], Script],
    expected: set[str],
    said: str,
) -> None:
    with ModelServer(replies) as model:
        findings = await examined(
            tmp_path, openai_base_url=model.base_url, llm_model="scripted"
        )
    assert states(findings, "model") == expected
    assert said in words(findings, "model")
    assert f"scripted: scripted at {model.base_url}" in words(findings, "model")


async def test_every_key_of_a_model_is_examined(tmp_path: Path) -> None:
    def one_key(request: ChatRequest) -> Script:
        return well(request) if request.key == "good-key" else refused(request)

    with ModelServer(one_key) as model:
        findings = await examined(
            tmp_path,
            openai_base_url=model.base_url,
            llm_model="scripted",
            openai_api_key=SecretStr("good-key,bad-key"),
        )
    found = {each.detail.partition(":")[0]: each.state for each in of_part(findings, "model")}
    assert found == {"scripted (key 1)": "ok", "scripted (key 2)": "fail"}


async def test_servers_of_tools_are_examined(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    with ModelServer(well) as model, ToolServer() as server:
        file.write_text(
            f"[[endpoint]]\nmodel = 'scripted'\nbase_url = '{model.base_url}'\n"
            f"{server.table}[mcp.gone]\nurl = 'http://{DEAD}/mcp?key=hidden'\n"
        )
        findings = await examined(tmp_path, models_file=file)
    assert states(findings, "tools") == {"ok", "fail"}
    found = words(findings, "tools")
    assert "weather offers forecast." in found
    assert "gone: the connection failed" in found
    assert "[mcp.gone] in MODELS_FILE" in found
    assert "hidden" not in found


def seeing(colour: str) -> Callable[[ChatRequest], Script]:
    def reply(request: ChatRequest) -> Script:
        shown = isinstance(request.messages[-1]["content"], list)
        return answer(f"{colour}.", usage=(5, 1)) if shown else well(request)

    return reply


def blind(request: ChatRequest) -> Script:
    shown = isinstance(request.messages[-1]["content"], list)
    return refuse(400, {"error": {"message": "no images"}}) if shown else well(request)


@pytest.mark.parametrize(
    ("replies", "expected", "said"),
    [
        pytest.param(seeing("Red"), {"ok"}, "reads images.", id="sees"),
        pytest.param(seeing("红色"), {"ok"}, "reads images.", id="sees, in Chinese"),
        pytest.param(seeing("Blue"), {"ok", "warn"}, "did not see", id="does not look"),
        pytest.param(blind, {"ok", "fail"}, "seeing: ", id="refuses images"),
    ],
)
async def test_model_that_can_see_is_shown_an_image(
    tmp_path: Path,
    replies: Callable[[ChatRequest], Script],
    expected: set[str],
    said: str,
) -> None:
    with ModelServer(replies) as model:
        file = endpoint(tmp_path, model, name="seeing", vision=True, context_window=9000)
        findings = await examined(tmp_path, models_file=file)

    assert states(findings, "model") == expected
    assert said in words(findings, "model")
    assert "up to 9,000 tokens at once, as it is set" in words(findings, "model")


async def test_endpoint_without_tools_is_not_asked_to_call_one(tmp_path: Path) -> None:
    with ModelServer(without_tools) as model:
        file = endpoint(tmp_path, model, name="plain", tools=False)
        findings = await examined(tmp_path, models_file=file)

        assert not any(request.tools for request in model.seen)
    assert states(findings, "model") == {"ok", "off"}
    assert "plain: is set to call no tools" in words(findings, "model")


async def test_slow_endpoint_is_named(tmp_path: Path) -> None:
    def slow(request: ChatRequest) -> Script:
        return well(request) if request.tools else hang()

    with ModelServer(slow) as model:
        settings = Settings(
            chatbot_data_dir=tmp_path,
            models_file=endpoint(tmp_path, model, name="slow one"),
        )
        load(settings)
        findings = await examine_services(settings, seconds=1.5)

    found = words(findings, "model")
    assert "slow one: a short answer was not there in time." in found
    assert "slow one: calls tools" in found


@pytest.mark.parametrize(
    ("model", "expected", "said"),
    [
        pytest.param(
            "meanings", {"ok"}, "meanings embeds a sentence into 8 numbers", id="works"
        ),
        pytest.param(None, {"fail"}, "EMBEDDING_MODEL is missing", id="no model"),
    ],
)
async def test_embeddings_are_asked_for(
    tmp_path: Path, model: str | None, expected: set[str], said: str
) -> None:
    with EmbeddingServer() as server:
        findings = await examined(
            tmp_path, embedding_base_url=server.base_url, embedding_model=model
        )
    assert states(findings, "embeddings") == expected
    assert said in words(findings, "embeddings")


async def test_endpoint_of_embeddings_that_is_down_fails(tmp_path: Path) -> None:
    findings = await examined(
        tmp_path, embedding_base_url=f"http://{DEAD}/v1", embedding_model="meanings"
    )
    assert states(findings, "embeddings") == {"fail"}
    assert "EMBEDDING_BASE_URL" in words(findings, "embeddings")
