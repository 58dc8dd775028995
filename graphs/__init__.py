"""The state machine that answers one question at a time, and the ways to use it from Python."""

from chatbot.ports import Ports
from graphs.chat import build_graph
from graphs.conversation import Answer, Chatbot, open_chatbot
from graphs.state import Context
from graphs.synchronous import SyncChatbot, open_chatbot_sync

__all__ = [
    "Answer",
    "Chatbot",
    "Context",
    "Ports",
    "SyncChatbot",
    "build_graph",
    "open_chatbot",
    "open_chatbot_sync",
]
