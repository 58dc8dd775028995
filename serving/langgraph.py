"""What `langgraph.json` names: the graph of this server, and our HTTP app inside it."""

import asyncio

from langchain_core.runnables import RunnableConfig

from chatbot.errors import ChatbotError
from graphs.chat import ChatGraph
from graphs.conversation import Chatbot
from graphs.opening import FROM_CHECKPOINT
from serving.http.app import create_app

OPEN_SECONDS = 60.0
POLL_SECONDS = 0.05

app = create_app()


async def chat(config: RunnableConfig) -> ChatGraph:
    """Return the graph, once the app's lifespan has opened what it is built on.

    A server that was killed executes its unfinished runs again before its lifespan has begun.

    Raises:
        ChatbotError: The chatbot did not open within a minute; the log says why.
    """
    give_up = asyncio.get_running_loop().time() + OPEN_SECONDS
    while (bot := _bot()) is None:
        if asyncio.get_running_loop().time() > give_up:
            message = "The chatbot could not be opened. The log has the details."
            raise ChatbotError(message)
        await asyncio.sleep(POLL_SECONDS)
    if not config.get("configurable", {}).get("checkpoint_id"):
        return bot.graph
    # Only here it is seen that a client goes on from an earlier point: it edits, or asks again.
    return bot.graph.with_config(configurable={FROM_CHECKPOINT: True})


def _bot() -> Chatbot | None:
    bot: Chatbot | None = getattr(app.state, "bot", None)
    return bot
