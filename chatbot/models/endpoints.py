"""The endpoints that the settings name."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import SecretStr

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A model at an address with one key.

    `provider` is `openai` or `dashscope` for what speaks OpenAI's chat completions, else a
    provider of LangChain's `init_chat_model`. `base_url` is the provider's own where it is
    `None`. `reasoning_opened` declares that the prompt template holds the opening `<think>`.
    """

    name: str
    provider: str
    model: str
    base_url: str | None = None
    api_key: SecretStr | None = None
    weight: int = 1
    streaming: bool = True
    reasoning_opened: bool = False

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
