"""The settings of one part alone, so that a fault in another does not hide it."""

from chatbot.settings import Settings

HISTORY = ("mongodb_uri",)
KNOWLEDGE = ("ragflow_api_key", "ragflow_base_url")
_PARTS = (
    *HISTORY,
    *KNOWLEDGE,
    "llm_model",
    "dashscope_api_key",
    "openai_api_key",
    "openai_base_url",
    "models_file",
    "prompts_dir",
)


def only(settings: Settings, *fields: str) -> Settings:
    """Return the settings with the embedded parts in place of all but what `fields` name."""
    return settings.model_copy(update=dict.fromkeys(set(_PARTS) - set(fields)))
