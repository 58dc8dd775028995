"""Which model the settings name."""

from pathlib import Path
from typing import Any

import pytest

from chatbot.errors import ConfigurationError
from chatbot.models.selection import open_model, select_model
from chatbot.settings import PROJECT, Settings

DASHSCOPE = {"dashscope_api_key": "sk-d"}
OPENAI = {"openai_api_key": "sk-o"}
OWN = {"openai_base_url": "http://gpu:8000/v1"}
HERE = "https://dashscope.aliyuncs.com/compatible-mode/v1"


def settings(**values: Any) -> Settings:
    return Settings(**values)


def named(**values: Any) -> list[tuple[str, str, str | None]] | None:
    choice = select_model(settings(**values))
    if choice is None:
        return None
    return [(one.provider, one.model, one.base_url) for one in choice.endpoints]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param(DASHSCOPE, ("dashscope", "qwen-plus", HERE), id="DashScope's key alone"),
        pytest.param(OPENAI, ("openai", "gpt-4.1-mini", None), id="OpenAI's key alone"),
        pytest.param(
            {**OWN, "llm_model": "qwen2.5:7b"},
            ("openai", "qwen2.5:7b", OWN["openai_base_url"]),
            id="a server without key",
        ),
        pytest.param(
            {**DASHSCOPE, "llm_model": "deepseek-v3"}, ("dashscope", "deepseek-v3", HERE),
            id="another model of DashScope",
        ),
        pytest.param(
            {**DASHSCOPE, **OPENAI}, ("dashscope", "qwen-plus", HERE), id="both, no model"
        ),
        pytest.param(
            {**DASHSCOPE, **OPENAI, "llm_model": "gpt-4o"}, ("openai", "gpt-4o", None),
            id="both, a GPT model",
        ),
        pytest.param(
            {**DASHSCOPE, **OPENAI, "llm_model": "qwen-max"}, ("dashscope", "qwen-max", HERE),
            id="both, a Qwen model",
        ),
        pytest.param(
            {**DASHSCOPE, **OPENAI, "llm_model": "openai:qwen-max"},
            ("openai", "qwen-max", None),
            id="both, named outright",
        ),
        pytest.param(
            {**DASHSCOPE, **OWN, "llm_model": "Qwen/Qwen3-8B"},
            ("openai", "Qwen/Qwen3-8B", OWN["openai_base_url"]), id="both, a name with a path",
        ),
        pytest.param(
            {**DASHSCOPE, **OWN, "llm_model": "qwen-plus"}, ("dashscope", "qwen-plus", HERE),
            id="both, a name of DashScope",
        ),
        pytest.param(
            {**DASHSCOPE, **OWN, "llm_model": "my-model"},
            ("openai", "my-model", OWN["openai_base_url"]), id="both, a name of nobody",
        ),
        pytest.param(
            {**DASHSCOPE, **OPENAI, "llm_model": "glm-4.5"}, ("dashscope", "glm-4.5", HERE),
            id="both, a name that OpenAI cannot have",
        ),
        pytest.param(
            {"llm_model": "anthropic:claude-sonnet-4-5"},
            ("anthropic", "claude-sonnet-4-5", None), id="another provider",
        ),
        pytest.param(
            {"llm_model": "claude-sonnet-4-5"}, ("anthropic", "claude-sonnet-4-5", None),
            id="another provider, by the model",
        ),
        pytest.param(
            {**OPENAI, "llm_model": "google_genai:gemini-2.5-flash"},
            ("google_genai", "gemini-2.5-flash", None), id="another provider beside a key",
        ),
    ],
)  # fmt: skip
def test_the_settings_name_a_model(
    values: dict[str, Any], expected: tuple[str, str, str | None] | None
) -> None:
    assert named(**values) == (expected if expected is None else [expected])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        pytest.param({"llm_model": "qwen-plus"}, "DASHSCOPE_API_KEY", id="no key"),
        pytest.param({"llm_model": "dashscope:qwen"}, "DASHSCOPE_API_KEY", id="no key there"),
        pytest.param(
            {**DASHSCOPE, "llm_model": "openai:gpt-4o"}, "OPENAI_API_KEY", id="another's key"
        ),
        pytest.param(OWN, "LLM_MODEL is not set", id="no model"),
        pytest.param(
            {"llm_model": "anthropic:"}, "names no model", id="nothing after the colon"
        ),
        pytest.param({"dashscope_api_key": "sk a"}, "DASHSCOPE_API_KEY", id="a space in a key"),
        pytest.param({"openai_api_key": "密钥"}, "OPENAI_API_KEY", id="letters no key has"),
    ],
)
def test_what_cannot_work_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        select_model(settings(**values))
    assert "sk a" not in str(caught.value)


def test_each_of_several_keys_is_an_endpoint() -> None:
    choice = select_model(settings(openai_api_key=" a, b,,c ", llm_model="m"))
    assert choice is not None
    assert [one.name for one in choice.endpoints] == ["m (key 1)", "m (key 2)", "m (key 3)"]
    assert choice.name == "m"
    keys = [one.api_key.get_secret_value() for one in choice.endpoints if one.api_key]
    assert keys == ["a", "b", "c"]


async def test_a_missing_package_is_named() -> None:
    chosen = settings(llm_model="ollama:llama3")
    choice = select_model(chosen)
    assert choice is not None
    with pytest.raises(ConfigurationError, match="pip install langchain-ollama"):
        async with open_model(choice, chosen):
            pass


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "models.toml"


def test_a_file_names_the_endpoints(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS_OF_THE_TEST", "one,two")
    file.write_text(
        """
        [[endpoint]]
        model = "qwen-vl-max"
        base_url = "https://example.com/v1/"
        api_key_variable = "KEYS_OF_THE_TEST"
        weight = 3

        [[endpoint]]
        name = "own"
        model = "Qwen/Qwen3-32B"
        base_url = "http://gpu-1:8000/v1"
        reasoning_opened = true
        streaming = false
        tools = false
        context_window = 32768

        [mcp.weather]
        url = "http://127.0.0.1:9000/mcp"
        """
    )
    choice = select_model(settings(models_file=file, llm_model="ignored"))
    assert choice is not None
    one, two, own = choice.endpoints
    assert (one.name, two.name, own.name) == (
        "qwen-vl-max (key 1)",
        "qwen-vl-max (key 2)",
        "own",
    )
    assert (one.base_url, one.weight) == ("https://example.com/v1", 3)
    assert (own.streaming, own.reasoning_opened, own.context_window) == (False, True, 32768)
    assert (own.api_key, own.weight) == (None, 1)
    assert one.abilities == {"vision", "tools", "json_schema"}
    assert own.abilities == {"json_schema"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("[[endpoint", "not valid TOML", id="no TOML"),
        pytest.param("", "no \\[\\[endpoint", id="empty"),
        pytest.param("endpoint = 3", "no \\[\\[endpoint", id="no table"),
        pytest.param("[[endpoints]]\nmodel='m'", "unknown table: endpoints", id="a typo"),
        pytest.param("[[endpoint]]\nname='n'", "endpoint 1: model", id="no model"),
        pytest.param(
            "[[endpoint]]\nmodel='m'\nwieght=2", "wieght: there is no such key.*mean weight",
            id="an unknown field",
        ),
        pytest.param("[[endpoint]]\nmodel='m'\nweight=0", "weight", id="a wrong weight"),
        pytest.param("[[endpoint]]\nmodel='m'\nprovider='x'", "must be one of", id="provider"),
        pytest.param("[[endpoint]]\nmodel='m'\nbase_url='gpu'", "http", id="no address"),
        pytest.param(
            "[[endpoint]]\nmodel='m'\napi_key_variable='NOT_SET_IN_TESTS'", "NOT_SET_IN_TESTS",
            id="a variable that is not set",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_named(text: str, words: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=words) as caught:
        select_model(settings(models_file=file))
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="MODELS_FILE"):
        select_model(settings(models_file=file))


def test_the_example_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-one,sk-two")
    choice = select_model(settings(models_file=PROJECT / "examples" / "models.toml"))
    assert choice is not None
    assert [each.weight for each in choice.endpoints] == [2, 2, 1]
    assert choice.endpoints[2].reasoning_opened
