"""`chatbot ask`: one question, for people in a hurry and for scripts."""

import asyncio
import json
import sys
from contextlib import aclosing

from chatbot.settings import Settings
from graphs.conversation import Chatbot, Choices, open_chatbot
from serving.cli.reply import Reply
from serving.cli.signals import ended_by_signals
from serving.cli.views import open_console, tell_trouble, view_of_turn


def ask(settings: Settings, question: str, choices: Choices, *, as_json: bool) -> bool:
    """Print the answer and return whether there is one.

    Raises:
        ConfigurationError: A setting is wrong or another one is missing beside it.
    """
    show = _print_json if as_json else _print_text

    async def turn() -> Reply:
        with ended_by_signals():
            async with open_chatbot(settings) as bot:
                return await show(bot, question, choices)

    reply = asyncio.run(turn())
    return reply.error is None


async def _print_text(bot: Chatbot, question: str, choices: Choices) -> Reply:
    view = view_of_turn(open_console())
    events = bot.stream(question, **choices)
    with view:
        async with aclosing(events):
            async for event in events:
                view.show(event)
    return view.reply


async def _print_json(bot: Chatbot, question: str, choices: Choices) -> Reply:
    reply = Reply()
    events = bot.stream(question, **choices)
    async with aclosing(events):
        async for event in events:
            reply.add(event)
    sys.stdout.write(json.dumps(reply.json(), ensure_ascii=False) + "\n")
    tell_trouble(reply)
    return reply
