"""Decides from the settings which model answers, and opens it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from chatbot.errors import ConfigurationError
from chatbot.models.endpoints import PACKAGES, Endpoint, ModelChoice
from chatbot.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

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

    Raises:
        ConfigurationError: A model is named that nothing can serve.
    """
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
    endpoint = Endpoint(name=f"{provider}:{model}", provider=provider, model=model)
    return ModelChoice(endpoints=(endpoint,))


@asynccontextmanager
async def open_model(choice: ModelChoice, settings: Settings) -> AsyncIterator["BaseChatModel"]:
    """Yield the chosen model and close its connections at the end.

    Raises:
        ConfigurationError: It needs a package or a key that is not there.
    """
    # LangChain's packages take seconds to import: not in the event loop.
    model, close = await asyncio.to_thread(_build, choice, settings)
    try:
        yield model
    finally:
        await close()


def _build(
    choice: ModelChoice, settings: Settings
) -> tuple["BaseChatModel", Callable[[], Awaitable[None]]]:
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
    return _endpoints(
        "dashscope",
        model or DEFAULT_MODELS["dashscope"],
        settings.dashscope_base_url,
        settings.dashscope_api_key,
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
    return _endpoints(
        "openai", model or DEFAULT_MODELS["openai"], address, settings.openai_api_key
    )


def _endpoints(
    provider: str, model: str, base_url: str | None, api_key: SecretStr | None
) -> ModelChoice:
    """Return an endpoint for each key: several are separated by commas."""
    variable = f"{provider.upper()}_API_KEY"
    keys = split_keys(api_key, variable)
    return ModelChoice(
        endpoints=tuple(
            Endpoint(
                name=model if len(keys) == 1 else f"{model} (key {number})",
                provider=provider,
                model=model,
                base_url=base_url,
                api_key=key,
            )
            for number, key in enumerate(keys, 1)
        )
    )


def split_keys(api_key: SecretStr | None, variable: str) -> Sequence[SecretStr | None]:
    """Return the keys that a setting holds, or one absent key.

    Raises:
        ConfigurationError: A key has characters that no key has.
    """
    text = "" if api_key is None else api_key.get_secret_value()
    keys = [key for key in (part.strip() for part in text.split(",")) if key]
    if any(not key.isascii() or not key.isprintable() or " " in key for key in keys):
        message = f"{variable} holds spaces or characters that no key has. Copy it again."
        raise ConfigurationError(message)
    return [SecretStr(key) for key in keys] or [None]
