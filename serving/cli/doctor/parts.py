"""The settings of one part alone, so that a fault in another does not hide it."""

from collections.abc import Sequence

from chatbot.settings import Settings

HISTORY = ("mongodb_uri",)
KNOWLEDGE = ("ragflow_api_key", "ragflow_base_url")
MODEL = (
    "llm_model",
    "dashscope_api_key",
    "openai_api_key",
    "openai_base_url",
    "models_file",
)
_PARTS = (*HISTORY, *KNOWLEDGE, *MODEL, "prompts_dir")


def set_fields(settings: Settings, fields: Sequence[str]) -> Sequence[str]:
    """Return which of the fields are set."""
    return [field for field in fields if getattr(settings, field) is not None]


def only(settings: Settings, *fields: str) -> Settings:
    """Return the settings with the embedded parts in place of all but what `fields` name."""
    return settings.model_copy(update=dict.fromkeys(set(_PARTS) - set(fields)))
