"""Whole turns over MongoDB: what they hold of it, and what they lose when it hangs."""

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from pymongo import MongoClient

from chatbot.domain import Session, Turn
from chatbot.leases.port import SessionLeases
from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from tests.servers.model import Brain, ModelServer, answer
from tests.servers.mongod import Mongod
from tests.stopwatch import Stopwatch

TURNS = 50
WRITING_SECONDS = 2.5
LOST_SECONDS = 1.25  # the second that a turn may lose, on a machine that does more than this


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Return settings with a MongoDB and a model, and nothing to look up."""

    def made(uri: str, model: ModelServer) -> Settings:
        return Settings(
            mongodb_uri=SecretStr(uri),
            mongodb_db="turns",
            chatbot_data_dir=tmp_path / "data",
            knowledge_dir=tmp_path,
            llm_model="scripted",
            openai_base_url=model.base_url,
            openai_api_key=SecretStr("k"),
        )

    return made


async def test_slow_turns_run_at_once_over_a_single_connection(
    mongod: Mongod, settings: Callable[..., Settings]
) -> None:
    brain = Brain(answer=answer("Done.", wait=WRITING_SECONDS))
    with ModelServer(brain) as model:
        uri = f"{mongod.uri}&maxPoolSize=1&appName=narrow"
        async with open_chatbot(settings(uri, model)) as bot:
            asked = []
            for number in range(TURNS):
                ask = bot.ask("?", session_id=f"s{number}", user_id="u")
                asked.append(asyncio.create_task(ask))
                await asyncio.sleep(0.8 * WRITING_SECONDS / TURNS)
            start = time.perf_counter()
            connections = await asyncio.to_thread(connected, mongod, "narrow")
            answers = await asyncio.gather(*asked)
            took = time.perf_counter() - start
            async with asyncio.timeout(20):  # what did not find the connection free comes later
                while len(await bot.sessions(user_id="u", limit=TURNS)) < TURNS:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.05)
    assert {each.text for each in answers} == {"Done."}
    assert took < TURNS * WRITING_SECONDS / 4
    assert connections <= 3  # the one, and two with which the driver watches the server


def connected(mongod: Mongod, name: str) -> int:
    """Return how many connections the server has from a program of this name."""
    pipeline: list[dict[str, Any]] = [
        {"$currentOp": {"allUsers": True, "idleConnections": True}},
        {"$match": {"appName": name}},
    ]
    with MongoClient[dict[str, Any]](mongod.uri) as client:
        return len(list(client.admin.aggregate(pipeline)))


@pytest.mark.parametrize("here", [True, False], ids=["here", "by another process"])
@pytest.mark.parametrize("deed", [Chatbot.clear, Chatbot.forget_user])
async def test_deleting_while_a_first_turn_runs_leaves_nothing_behind(
    mongod: Mongod,
    settings: Callable[..., Settings],
    tmp_path: Path,
    deed: Callable[..., Awaitable[int]],
    *,
    here: bool,
) -> None:
    user = f"{deed.__name__}-{here}"
    named = {"user_id": user} | ({"session_id": "s"} if deed is Chatbot.clear else {})
    go_on = threading.Event()
    with ModelServer(Brain(answer=answer("Secret.", wait=go_on))) as model:
        chosen = settings(mongod.uri, model)
        elsewhere = chosen.model_copy(update={"chatbot_data_dir": tmp_path / "elsewhere"})
        async with open_chatbot(chosen) as bot, open_chatbot(elsewhere) as other:
            asking = asyncio.create_task(bot.ask("My secret?", session_id="s", user_id=user))
            while not model.seen:  # noqa: ASYNC110 - the model tells nobody
                await asyncio.sleep(0.01)
            await deed(bot if here else other, **named)
            go_on.set()
            assert (await asking).text == "Secret."
            assert await bot.turns("s", user_id=user) == []
            assert await bot.sessions(user_id=user) == ()
    with MongoClient[dict[str, Any]](mongod.uri) as client:
        for collection in ("chat_history", "chat_history_leases", "chat_history_images"):
            assert client.turns[collection].count_documents({"user_id": user}) == 0
        left = list(client.turns.chat_history_sessions.find({"user_id": user}))
    assert left
    assert "ecret" not in str(left)
    with sqlite3.connect(tmp_path / "data" / "history.sqlite3") as file:
        assert file.execute("SELECT count(*) FROM turns").fetchone() == (0,)
        assert file.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    file.close()


async def test_what_a_dead_process_had_said_in_a_deleted_session_is_gone(
    mongod: Mongod, settings: Callable[..., Settings]
) -> None:
    with ModelServer(Brain()) as model:
        async with open_chatbot(settings(mongod.uri, model)) as bot:
            dead = Turn(
                id="dead",
                question="My secret?",
                started_at=datetime.now(UTC) - timedelta(hours=2),
            )
            leases = bot.ports.leases
            assert leases is not None
            for name in ("s", "t"):
                await leases.claim(Session(session_id=name, user_id="dead"), dead)
            await asyncio.to_thread(expire, mongod)
            await bot.clear("s", user_id="dead")
            assert await left_by(leases, "dead") == ["t"]
            await bot.forget_user("dead")
            assert await left_by(leases, "dead") == []


async def left_by(leases: SessionLeases, user_id: str) -> list[str]:
    """Return the sessions of this user in which a holder died: others may have, too."""
    found = await leases.abandoned(2 * TURNS)
    return [session.session_id for session, _ in found if session.user_id == user_id]


def expire(mongod: Mongod) -> None:
    """Let the leases expire without the time that it takes."""
    with MongoClient[dict[str, Any]](mongod.uri) as client:
        past = {"$set": {"expires_at": datetime.now(UTC) - timedelta(seconds=1)}}
        client.turns.chat_history_leases.update_many({"user_id": "dead"}, past)


@pytest.fixture
def fragile() -> Iterator[Mongod]:
    with Mongod() as server:
        yield server


async def timed(bot: Chatbot, session_id: str = "s") -> float:
    """Return the seconds of a turn."""
    stopwatch = Stopwatch()
    await bot.ask("?", session_id=session_id)
    return stopwatch.seconds()


async def test_a_server_that_hangs_costs_the_first_turn_a_second_and_later_ones_nothing(
    fragile: Mongod, settings: Callable[..., Settings]
) -> None:
    with ModelServer(Brain()) as model:
        async with open_chatbot(settings(fragile.uri, model)) as bot:
            await timed(bot)
            healthy = max([await timed(bot) for _ in range(3)])
            fragile.pause()
            first = await timed(bot)
            later = min([await timed(bot) for _ in range(3)])
            fragile.resume()
            assert first - healthy < LOST_SECONDS
            assert later - healthy < 0.3
            async with asyncio.timeout(60):
                while "history" in await bot.health():  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.05)
            assert len(await bot.turns("s")) == 8


async def test_a_server_that_hangs_while_the_model_writes_costs_the_turn_a_second(
    fragile: Mongod, settings: Callable[..., Settings]
) -> None:
    go_on = threading.Event()
    go_on.set()
    with ModelServer(Brain(answer=answer("Done.", wait=go_on))) as model:
        async with open_chatbot(settings(fragile.uri, model)) as bot:
            await timed(bot)
            healthy = max([await timed(bot) for _ in range(2)])
            go_on.clear()
            asked = len(model.seen)
            turn = asyncio.create_task(timed(bot))
            while len(model.seen) == asked or model.seen[-1].tools:  # noqa: ASYNC110 - the model tells nobody
                await asyncio.sleep(0.01)
            fragile.pause()
            go_on.set()
            took = await turn
            fragile.resume()
    assert took - healthy < LOST_SECONDS


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"mongodb://127.0.0.1:{listener.getsockname()[1]}/?directConnection=true"


async def test_a_server_that_never_says_a_word_costs_the_first_turn_a_second(
    silent: str, settings: Callable[..., Settings]
) -> None:
    with ModelServer(Brain()) as model:
        async with open_chatbot(settings(silent, model)) as bot:
            first = await timed(bot)
            later = max([await timed(bot) for _ in range(3)])
            assert first - later < LOST_SECONDS
            assert [each["part"] for each in (await bot.turns("s"))[-1].record["degraded"]]
