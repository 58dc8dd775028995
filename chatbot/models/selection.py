"""Decides from the settings which model answers, and opens it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chatbot.errors import ConfigurationError
from chatbot.models.endpoints import PACKAGES, Endpoint, ModelChoice, for_each_key
from chatbot.models.models_file import read_models_file
from chatbot.settings import Settings

if TYPE_CHECKING:
    from chatbot.models.pool import ModelPool

DEFAULT_MODELS = {"dashscope": "qwen-plus", "openai": "gpt-4.1-mini"}
_OF_QWEN = ("qwen", "qwq", "qvq")
_OF_OPENAI = ("gpt-", "chatgpt", "o1", "o3", "o4")
_OF_OTHERS = {"claude": "anthropic", "gemini": "google_genai"}


def select_model(settings: Settings) -> ModelChoice | None:
    """Return the model that the settings name, or nothing where they name none.

    `LLM_MODEL` may say where the model is: `dashscope:…`, `openai:…`, `anthropic:…`. Without
    that, the only service that is set serves it. Where DashScope and OpenAI are both set, Qwen
    models are DashScope's and GPT models OpenAI's; any other name belongs to `OPENAI_BASE_URL`
    if that is set, else to DashScope. Without `LLM_MODEL`, DashScope goes before OpenAI.
    `MODELS_FILE` goes before all of these. It is read here: not in an event loop.

    Raises:
        ConfigurationError: A model is named that nothing can serve, or `MODELS_FILE` is wrong.
    """
    if settings.models_file is not None:
        return ModelChoice(endpoints=read_models_file(settings.path(settings.models_file)))
    provider, model = _split(settings.llm_model or "")
    if not provider:
        provider = _provider(settings, model)
    if not provider:
        return None
    if provider == "dashscope":
        return _dashscope(settings, model)
    if provider == "openai":
        return _openai(settings, model)
    if not model:
        message = f"LLM_MODEL={settings.llm_model} names no model after the colon."
        raise ConfigurationError(message)
    endpoint = Endpoint(provider=provider, model=model, context_window=settings.context_window)
    return ModelChoice(endpoints=(endpoint,))


@asynccontextmanager
async def open_model(choice: ModelChoice, settings: Settings) -> AsyncIterator["ModelPool"]:
    """Yield the chosen model and close its connections at the end.

    Raises:
        ConfigurationError: It needs a package or a key that is not there.
    """
    # LangChain's packages take seconds to import: not in the event loop.
    model = await asyncio.to_thread(_build, choice, settings)
    try:
        yield model
    finally:
        await model.aclose()


def _build(choice: ModelChoice, settings: Settings) -> "ModelPool":
    from chatbot.models.building import build  # noqa: PLC0415 - heavy, and only here needed

    return build(choice, settings)


def _split(name: str) -> tuple[str, str]:
    """Tell `provider:model` from a model whose own name has a colon, as Ollama's have."""
    provider, colon, model = name.strip().partition(":")
    if colon and provider in {"openai", "dashscope", *PACKAGES}:
        return provider, model.strip()
    return "", name.strip()


def _provider(settings: Settings, model: str) -> str:
    dashscope = settings.dashscope_api_key is not None
    openai = settings.openai_api_key is not None or settings.openai_base_url is not None
    if dashscope and openai and model:
        return _of_two(settings, model)
    if dashscope:
        return "dashscope"
    if openai:
        return "openai"
    if not model:
        return ""
    for prefix, provider in _OF_OTHERS.items():
        if model.startswith(prefix):
            return provider
    message = (
        f"LLM_MODEL={model} is set, but nothing that serves it. Set DASHSCOPE_API_KEY, or "
        "OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own."
    )
    raise ConfigurationError(message)


def _of_two(settings: Settings, model: str) -> str:
    name = model.lower()
    if name.startswith(_OF_OPENAI):
        return "openai"
    own_server = settings.openai_base_url is not None
    if name.startswith(_OF_QWEN) and not (own_server and set(name) & set(":/")):
        return "dashscope"
    return "openai" if own_server else "dashscope"


def _dashscope(settings: Settings, model: str) -> ModelChoice:
    if settings.dashscope_api_key is None:
        message = f"LLM_MODEL={settings.llm_model} needs DASHSCOPE_API_KEY, which is not set."
        raise ConfigurationError(message)
    endpoint = Endpoint(
        provider="dashscope",
        model=model or DEFAULT_MODELS["dashscope"],
        base_url=settings.dashscope_base_url,
        context_window=settings.context_window,
    )
    return ModelChoice(
        endpoints=for_each_key(endpoint, settings.dashscope_api_key, "DASHSCOPE_API_KEY")
    )


def _openai(settings: Settings, model: str) -> ModelChoice:
    address = settings.openai_base_url
    own_server = address is not None and urlsplit(address).hostname != "api.openai.com"
    if settings.openai_api_key is None and not own_server:
        message = (
            f"LLM_MODEL={settings.llm_model} needs OPENAI_API_KEY, or OPENAI_BASE_URL for a "
            "server of your own. Neither is set."
        )
        raise ConfigurationError(message)
    if own_server and not model:
        message = "LLM_MODEL is not set. Name the model that OPENAI_BASE_URL serves."
        raise ConfigurationError(message)
    endpoint = Endpoint(
        provider="openai",
        model=model or DEFAULT_MODELS["openai"],
        base_url=address,
        context_window=settings.context_window,
    )
    return ModelChoice(
        endpoints=for_each_key(endpoint, settings.openai_api_key, "OPENAI_API_KEY")
    )
