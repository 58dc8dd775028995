"""The bot as a model, `/v1/chat/completions` and all, as the clients of OpenAI know it."""

from serving.openai.routes import router

__all__ = ["router"]
