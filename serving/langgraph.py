"""What `langgraph.json` names: the graph of this server, and our HTTP app inside it."""

from graphs.chat import ChatGraph
from graphs.conversation import Chatbot
from serving.http.app import create_app

app = create_app()


def chat() -> ChatGraph:
    """Return the graph; the app's lifespan opened what it is built on."""
    bot: Chatbot = app.state.bot
    return bot.graph
