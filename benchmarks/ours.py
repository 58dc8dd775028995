"""The chatbot as it is served, without HTTP: leases, limits, citations, saved turns."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from benchmarks.steps import MODEL, Services
from chatbot.settings import Settings
from graphs.conversation import Chatbot
from serving.process import open_served


class Ours:
    """Gives the pieces of the answers."""

    def __init__(self, bot: Chatbot) -> None:
        self._bot = bot

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer."""
        async with aclosing(self._bot.stream(question, session_id=session_id)) as events:
            async for event in events:
                if event["type"] == "content":
                    yield event["data"]
                elif event["type"] == "error":
                    raise RuntimeError(event["data"]["message"])


def settings(services: Services, folder: Path) -> Settings:
    """Return the settings for these services: nothing else is read."""
    return Settings(
        chatbot_data_dir=folder,
        llm_model=MODEL,
        openai_base_url=f"{services.model}/v1",
        ragflow_base_url=services.ragflow,
        ragflow_api_key=cast("Any", services.key),
        mongodb_uri=cast("Any", services.mongodb or None),
    )


@asynccontextmanager
async def opened(services: Services) -> AsyncIterator[Ours]:
    """Open the chatbot with its embedded history, or with MongoDB where there is one."""
    with TemporaryDirectory() as folder:
        async with open_served(settings(services, Path(folder))) as bot:
            yield Ours(bot)
