"""The endpoints that the settings name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from chatbot.errors import ConfigurationError

PACKAGES = {  # what to install for each provider of `init_chat_model`
    "anthropic": "'ragflow-chatbot[anthropic]'",
    "google_genai": "'ragflow-chatbot[google]'",
    "azure_openai": "langchain-openai",
    "bedrock_converse": "langchain-aws",
    "cohere": "langchain-cohere",
    "deepseek": "langchain-deepseek",
    "fireworks": "langchain-fireworks",
    "google_vertexai": "langchain-google-vertexai",
    "groq": "langchain-groq",
    "huggingface": "langchain-huggingface",
    "mistralai": "langchain-mistralai",
    "nvidia": "langchain-nvidia-ai-endpoints",
    "ollama": "langchain-ollama",
    "openrouter": "langchain-openrouter",
    "together": "langchain-together",
    "xai": "langchain-xai",
}


Ability = Literal["vision", "tools", "json_schema"]
ABILITIES: Mapping[Ability, str] = {
    "vision": "reads images",
    "tools": "calls tools",
    "json_schema": "answers by a JSON schema",
}
_WITH_VISION = re.compile(
    r"gpt-(4o|4\.1|4\.5|5)|chatgpt-4o|^o[134](?!.*mini)|o4-mini|-vl\b|vl-|qvq|omni|vision|llava"
    r"|pixtral|internvl|minicpm-v|glm-4\.?\d?v|gemma-?3|llama-?4|claude|gemini",
    re.IGNORECASE,
)


def sees_images(model: str) -> bool:
    """Whether a model of this name is known to read images."""
    return _WITH_VISION.search(model) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A model at an address with one key.

    `provider` is `openai` or `dashscope` for what speaks OpenAI's chat completions, else a
    provider of LangChain's `init_chat_model`. `base_url` is the provider's own where it is
    `None`. `reasoning_opened` declares that the prompt template holds the opening `<think>`.
    `name` is what people read; without one it is the model's.
    """

    provider: str
    model: str
    name: str = ""
    base_url: str | None = None
    api_key: SecretStr | None = None
    weight: int = 1
    streaming: bool = True
    reasoning_opened: bool = False
    context_window: int | None = None
    vision: bool | None = None
    tools: bool = True
    json_schema: bool = True

    def __post_init__(self) -> None:
        """Fill in what follows from the name of the model."""
        if not self.name:
            object.__setattr__(self, "name", self.model)
        if self.vision is None:
            object.__setattr__(self, "vision", sees_images(self.model))

    @property
    def address(self) -> str | None:
        """Where it is, without what signs in; nothing where that is the provider's affair."""
        if self.base_url is None:
            return None
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{_host(self.base_url)}{parts.path}"

    @property
    def label(self) -> str:
        """What tells people which one it is: its name and its model."""
        return self.name if self.model in self.name else f"{self.name}, {self.model}"

    @property
    def place(self) -> str:
        """The same for those who run it: with its host."""
        return (
            self.label if self.base_url is None else f"{self.label} at {_host(self.base_url)}"
        )

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can be asked for."""
        can: Mapping[Ability, bool] = {
            "vision": bool(self.vision),
            "tools": self.tools,
            "json_schema": self.json_schema,
        }
        return frozenset(ability for ability, able in can.items() if able)

    @property
    def openai_compatible(self) -> bool:
        """Whether it speaks OpenAI's chat completions."""
        return self.provider in {"openai", "dashscope"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelChoice:
    """The endpoints that answer, at least one."""

    endpoints: Sequence[Endpoint]

    @property
    def name(self) -> str:
        """What people call the model."""
        return ", ".join(dict.fromkeys(endpoint.model for endpoint in self.endpoints))


def _host(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2]


def for_each_key(
    endpoint: Endpoint, given: SecretStr | None, variable: str
) -> Sequence[Endpoint]:
    """Return the endpoint once for each of its keys, which commas separate.

    Raises:
        ConfigurationError: A key has characters that no key has.
    """
    text = "" if given is None else given.get_secret_value()
    keys = [key for key in (part.strip() for part in text.split(",")) if key]
    if any(not key.isascii() or not key.isprintable() or " " in key for key in keys):
        message = f"{variable} holds spaces or characters that no key has. Copy it again."
        raise ConfigurationError(message)
    if len(keys) <= 1:
        return [replace(endpoint, api_key=SecretStr(keys[0]) if keys else None)]
    return [
        replace(endpoint, api_key=SecretStr(key), name=f"{endpoint.name} (key {number})")
        for number, key in enumerate(keys, 1)
    ]
