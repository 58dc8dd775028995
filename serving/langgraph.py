"""What `langgraph.json` names: the graph, our HTTP app beside it, and who may use both."""

import asyncio
from typing import Any

from langchain_core.runnables import RunnableConfig

from chatbot.errors import ChatbotError
from graphs.chat import ChatGraph
from graphs.conversation import Chatbot
from graphs.opening import FROM_CHECKPOINT
from serving.auth import Authenticator, Identity
from serving.auth.langgraph import langgraph_auth
from serving.http.app import create_app
from serving.http.quotas import Quotas
from serving.process import open_served

OPEN_SECONDS = 60.0
POLL_SECONDS = 0.05

app = create_app(open_bot=open_served)


async def chat(config: RunnableConfig) -> ChatGraph:
    """Return the graph, once the app's lifespan has opened what it is built on.

    A server that was killed executes its unfinished runs again before its lifespan has begun.

    Raises:
        ChatbotError: The chatbot did not open within a minute; the log says why.
    """
    bot: Chatbot = await _opened("bot")
    if not config.get("configurable", {}).get("checkpoint_id"):
        return bot.graph
    # Only here it is seen that a client goes on from an earlier point: it edits, or asks again.
    return bot.graph.with_config(configurable={FROM_CHECKPOINT: True})


async def _authenticator() -> Authenticator:
    found: Authenticator = await _opened("authenticator")
    return found


async def _opened(name: str) -> Any:  # noqa: ANN401 - what the lifespan put there
    give_up = asyncio.get_running_loop().time() + OPEN_SECONDS
    while (found := getattr(app.state, name, None)) is None:
        if asyncio.get_running_loop().time() > give_up:
            message = "The chatbot could not be opened. The log has the details."
            raise ChatbotError(message)
        await asyncio.sleep(POLL_SECONDS)
    return found


async def _admit(caller: Identity) -> None:
    """Count a run with the user's turns of the last minute: when it ends is not told here.

    Raises:
        TooManyError: It is one too many.
    """
    quotas: Quotas = await _opened("quotas")
    release = await quotas.admit(caller)
    release()


auth = langgraph_auth(_authenticator, _admit)
