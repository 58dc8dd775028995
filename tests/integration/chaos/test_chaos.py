"""Users in several processes talk while MongoDB and those processes are killed."""

import asyncio
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from chatbot.domain import Session, Turn
from chatbot.history import outbox
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.history.resilient import ResilientChatHistory
from chatbot.leases.local import LocalLeases
from chatbot.leases.mongodb import MongoLeases
from chatbot.leases.resilient import ResilientLeases
from chatbot.leases.sweeping import Sweeper
from tests.integration.chaos.crowd import (
    DATABASE,
    PATIENCE_SECONDS,
    USERS,
    WORKERS,
    Crowd,
    Line,
)
from tests.servers.chat_worker import answer_to
from tests.servers.mongod import Mongod
from tests.servers.replica_set import ReplicaSet

SECONDS = os.environ.get("CHAOS_SECONDS")
SEED = int(os.environ.get("CHAOS_SEED", "1"))
SLOWEST_SECONDS = 60.0  # nothing hangs; a machine that has other work may well be slow
SHOWN = 10  # of the turns before, which each prompt has


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What is broken: the server that takes writes, and how all are brought back."""

    uri: str
    victim: Callable[[], Mongod]
    recover: Callable[[], None]


@contextmanager
def standalone() -> Iterator[Cluster]:
    with Mongod() as server:
        yield Cluster(uri=server.uri, victim=lambda: server, recover=server.recover)


@contextmanager
def replica_set() -> Iterator[Cluster]:
    with ReplicaSet() as nodes:
        yield Cluster(uri=nodes.uri, victim=nodes.primary, recover=nodes.recover)


async def break_things(
    cluster: Cluster, crowd: Crowd, chance: random.Random, seconds: float
) -> None:
    """Do one harm after another: a kill or a pause of MongoDB, or the kill of a worker."""
    end = time.monotonic() + seconds
    harms = ["kill", "worker", "pause", "kill", "pause"]
    while time.monotonic() < end:
        for harm in harms:
            if time.monotonic() > end:
                return
            if harm == "worker":
                await crowd.replace(chance.randrange(WORKERS))
            else:
                victim = await asyncio.to_thread(cluster.victim)
                victim.kill() if harm == "kill" else victim.pause()
            await asyncio.sleep(chance.uniform(0.3, 1.5))
            await asyncio.to_thread(cluster.recover)
            await asyncio.sleep(chance.uniform(0.2, 1.0))
        chance.shuffle(harms)


async def held(cluster: Cluster, folder: Path) -> Mapping[str, Sequence[Turn]]:
    """Return the turns that MongoDB holds when nothing waits any more and nobody answers."""
    async with open_client(cluster.uri) as client:
        name, collection = DATABASE, "chat_history"
        primary = MongoChatHistory(client, database=name, collection=collection, ttl_days=30)
        leases = MongoLeases(client, database=name, collection=collection)
        local = LocalChatHistory(folder / "history.sqlite3")
        local_leases = LocalLeases(folder / "leases.sqlite3")
        async with ResilientChatHistory(primary, local) as history:
            both = ResilientLeases(leases, local_leases, away=lambda: False, failed=print)
            sweeper = Sweeper(history, both)
            for _ in range(3):
                await sweeper.sweep()
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await local.file.read(outbox.size):  # noqa: ASYNC110 - other processes send
                    await asyncio.sleep(0.1)
            await local_leases.close()
            return {name: await primary.turns(Session(session_id=name)) for name in USERS}


@pytest.mark.timeout(300 + 2 * float(SECONDS or 0))
@pytest.mark.parametrize(
    ("opened", "seconds"),
    [
        pytest.param(standalone, 14, id="one server"),
        pytest.param(replica_set, 5, id="replica set"),
    ],
)
async def test_every_turn_is_there_once_and_in_order_after_all_that_chaos(
    tmp_path: Path, opened: Callable[[], AbstractContextManager[Cluster]], seconds: float
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - repeatable harm
    with opened() as cluster:
        async with Crowd(uri=cluster.uri, folder=tmp_path) as crowd:
            await break_things(cluster, crowd, chance, float(SECONDS or seconds))
            await crowd.talked(2)
            await crowd.stop()
        turns = await held(cluster, tmp_path)
    diaries = crowd.diaries()
    for name in USERS:
        check_turns(turns[name], [of_session(diary, name) for diary in diaries])
    check_prompts(turns.values(), [line for diary in diaries for line in diary])
    codes = {line["code"] for diary in diaries for line in diary if "code" in line}
    assert codes <= {"taken_over"}  # which a machine without time for a process may come to
    slowest = max(line.get("seconds", 0) for diary in diaries for line in diary)
    assert slowest < SLOWEST_SECONDS


def of_session(diary: Sequence[Line], name: str) -> Mapping[str, list[str]]:
    """Return the session's turns in a diary, in its order, by what happened to them."""
    mine = {line["turn"] for line in diary if line.get("session") == name}
    found: dict[str, list[str]] = defaultdict(list)
    for line in diary:
        if line["turn"] in mine:
            found[line["what"]].append(line["turn"])
    return found


def check_turns(turns: Sequence[Turn], diaries: Sequence[Mapping[str, list[str]]]) -> None:
    """Check that each turn of which a word was said is there once, and all in order."""
    ids = [turn.id for turn in turns]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {turn_id for diary in diaries for turn_id in diary["try"]}
    complete = {turn.id for turn in turns if turn.status == "complete"}
    for diary in diaries:
        assert set(diary["said"]) <= set(ids)
        assert set(diary["end"]) <= complete
        tried = [turn_id for turn_id in diary["try"] if turn_id in set(ids)]
        assert [turn_id for turn_id in ids if turn_id in set(tried)] == tried
    for turn in turns:
        whole = "".join(answer_to(turn.question))
        assert whole.startswith(turn.answer)
        assert turn.status != "complete" or turn.answer == whole


def check_prompts(sessions: Iterable[Sequence[Turn]], lines: Sequence[Line]) -> None:
    """Check that each answer was given to what was said before, in the order that was kept."""
    before = {
        turn.id: [each.id for each in turns[:place]][-SHOWN:]
        for turns in sessions
        for place, turn in enumerate(turns)
    }
    known = {line["turn"] for line in lines if not line.get("degraded", ["it did not end"])}
    for line in lines:
        if line["what"] == "prompt":
            roles = [role for role, _ in line["said"]]
            assert roles == ["human", "ai"] * (len(roles) // 2) + ["human"]
            *earlier, asked = [word for role, word in line["said"] if role == "human"]
            if asked in known:
                assert earlier[-SHOWN:] == before[asked]
