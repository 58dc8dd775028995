"""A process that talks in several sessions at once and writes down what was acknowledged."""

import asyncio
import os
import random
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from chatbot.domain import Session, Turn
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.history.resilient import ResilientChatHistory

PAUSE_SECONDS = (0.1, 0.5)


async def main(uri: str, database: str, file: str, diary: str, *names: str) -> None:
    """Talk until standard input is closed.

    `diary` gets a line per turn that is tried and one per turn that was saved, with the
    seconds that took. It survives the process, which may be killed at any moment.
    """
    lines = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with open_client(uri) as client:
        primary = MongoChatHistory(client, database=database, collection="chat", ttl_days=30)
        async with ResilientChatHistory(primary, LocalChatHistory(file)) as history:
            users = [
                asyncio.create_task(
                    talk(history, Session(session_id=name), lines, tried(diary))
                )
                for name in names
            ]
            await asyncio.to_thread(sys.stdin.read)
            for user in users:
                user.cancel()
            await asyncio.gather(*users, return_exceptions=True)


async def talk(
    history: ResilientChatHistory, session: Session, lines: int, past: Sequence[Sequence[str]]
) -> None:
    """Load and save in turn, as a conversation does."""
    name = session.session_id
    mine = [int(turn) for who, turn in past if who == name]
    number = 1 + max(mine, default=0)
    while True:
        os.write(lines, f"try {name} {number}\n".encode())
        start = time.perf_counter()
        await history.load(session, limit=20)
        turn = Turn(
            id=str(number),
            question=f"question {number} 问题",
            answer=f"answer {number}",
            started_at=datetime.now(UTC),
        )
        await history.save(session, turn)
        took = time.perf_counter() - start
        os.write(lines, f"saved {name} {number} {took:.3f}\n".encode())
        number += 1
        await asyncio.sleep(random.uniform(*PAUSE_SECONDS))  # noqa: S311 - no secret


def tried(diary: str) -> list[list[str]]:
    """Return session and turn of each turn that was tried before."""
    lines = Path(diary).read_text(encoding="utf-8").splitlines()
    return [line.split()[1:] for line in lines if line.startswith("try ")]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
