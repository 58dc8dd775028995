"""What a process does that belongs to the chatbot alone: it looks for garbage less often.

Python looks for cycles of garbage whenever 700 more objects live than before. What modules,
graphs and connections are made of is none, and a turn leaves few cycles: looking so often was a
fifth of a start, and looking less often saves a sixth of a turn's CPU (`benchmarks.turns`).
"""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chatbot.settings import Settings
from graphs.conversation import Chatbot, open_chatbot

OBJECTS = 50_000  # between two looks: some ten megabytes


@asynccontextmanager
async def open_served(settings: Settings | None = None) -> AsyncIterator[Chatbot]:
    """Open the chatbot of a server, in a process that is there for nothing else.

    Raises:
        ConfigurationError: A setting is wrong.
    """
    async with open_chatbot(settings) as bot:
        settle()
        yield bot


def settle() -> None:
    """End the start: what it made stays, and is looked at no more."""
    gc.freeze()
    gc.set_threshold(OBJECTS)
