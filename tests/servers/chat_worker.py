"""A process that talks in several sessions at once and writes down what it was told."""

import asyncio
import json
import os
import random
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from multiprocessing.synchronize import Event
from typing import Any

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk

from chatbot.bootstrap import open_ports
from chatbot.settings import Settings
from graphs import Chatbot
from tests.ports import ScriptedChatModel

PAUSE_SECONDS = (0.3, 1.2)
WORD_SECONDS = 0.03


def answer_to(question: str) -> Sequence[str]:
    """Return the pieces of an answer: the id of the turn, and some more."""
    turn_id, _ = question.split()
    return [f"{turn_id} ", *(f"word{number} " for number in range(8))]


class Diary:
    """A file that outlives the process, which may be killed at any moment."""

    def __init__(self, file: str) -> None:
        self._lines = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, what: str, turn_id: str, **facts: object) -> None:
        line = json.dumps({"what": what, "turn": turn_id, **facts})
        os.write(self._lines, f"{line}\n".encode())


class EchoModel(ScriptedChatModel):
    """Answers with the question's first word and some more, and writes its prompts down."""

    diary: Any

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        question = str(messages[-1].content)
        said = [(each.type, str(each.content).partition(" ")[0]) for each in messages[1:]]
        self.diary.note("prompt", said[-1][1], said=said)
        for piece in answer_to(question):
            yield self._chunk(AIMessageChunk(content=piece))
            await asyncio.sleep(WORD_SECONDS)


def run(diary_file: str, settings: str, names: Sequence[str], until: Event) -> None:
    """Talk in the sessions of these names until it is time to stop."""
    asyncio.run(main(diary_file, settings, names, until))


async def main(diary_file: str, settings: str, names: Sequence[str], until: Event) -> None:
    diary = Diary(diary_file)
    async with open_ports(Settings.model_validate_json(settings)) as ports:
        bot = Chatbot(replace(ports, model=EchoModel(diary=diary)))
        users = [asyncio.create_task(talk(bot, name, diary)) for name in names]
        await asyncio.to_thread(until.wait)
        for user in users:
            user.cancel()
        await asyncio.gather(*users, return_exceptions=True)


async def talk(bot: Chatbot, name: str, diary: Diary) -> None:
    """Ask one question after the other, as a conversation does."""
    while True:
        turn_id = str(uuid.uuid4())
        start = time.perf_counter()
        diary.note("try", turn_id, session=name)
        stream = bot.stream(
            f"{turn_id} 问题", session_id=name, turn_id=turn_id, route="general_chat"
        )
        said = False
        async with aclosing(stream) as events:
            async for event in events:
                if event["type"] == "content" and not said:
                    said = True
                    diary.note("said", turn_id)
        seconds = time.perf_counter() - start
        if event["type"] == "end":
            degraded = [each["part"] for each in event["data"]["metadata"]["degraded"]]
            diary.note("end", turn_id, session=name, seconds=seconds, degraded=degraded)
        else:
            diary.note("error", turn_id, seconds=seconds, code=event["data"]["code"])
        await asyncio.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311 - no secret
