"""Users in several processes talk while MongoDB and those processes are killed."""

import asyncio
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chatbot.domain import Session
from chatbot.history import outbox
from chatbot.history.connection import open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.history.resilient import ResilientChatHistory
from tests.servers.mongod import Mongod
from tests.servers.replica_set import ReplicaSet

SECONDS = float(os.environ.get("CHAOS_SECONDS", "6"))
SEED = int(os.environ.get("CHAOS_SEED", "1"))
USERS = [f"user-{number}" for number in range(20)]
WORKERS = 3
DATABASE = "chaos"
PATIENCE_SECONDS = 60
SLOWEST_SECONDS = 4.0  # two calls of a second, in processes that share two cores
PROJECT = Path(__file__).parents[3]


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


@dataclass(kw_only=True)
class Crowd:
    """Worker processes that share one local file, and the diaries they write."""

    uri: str
    folder: Path
    workers: list[asyncio.subprocess.Process] = field(default_factory=list)

    @property
    def file(self) -> str:
        return str(self.folder / "history.sqlite3")

    async def start(self) -> None:
        self.workers = [await self._worker(number) for number in range(WORKERS)]
        await self.talked(2)

    async def talked(self, turns: int) -> None:
        """Return when every user has saved that many turns."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while min(self._saved().values()) < turns:  # noqa: ASYNC110 - other processes write
                await asyncio.sleep(0.2)

    async def replace(self, number: int) -> None:
        """Kill a worker and start another in its place."""
        self.workers[number].kill()
        await self.workers[number].wait()
        self.workers[number] = await self._worker(number)

    async def stop(self) -> None:
        for worker in self.workers:
            assert worker.stdin is not None
            worker.stdin.close()
        assert [await worker.wait() for worker in self.workers] == [0] * WORKERS

    def diaries(self) -> Iterator[list[str]]:
        for number in range(WORKERS):
            for line in self._diary(number).read_text(encoding="utf-8").splitlines():
                yield line.split()

    def _saved(self) -> Counter[str]:
        saved = Counter(dict.fromkeys(USERS, 0))
        saved.update(name for what, name, *_ in self.diaries() if what == "saved")
        return saved

    def _diary(self, number: int) -> Path:
        return self.folder / f"diary-{number}"

    async def _worker(self, number: int) -> asyncio.subprocess.Process:
        diary = self._diary(number)
        diary.touch()
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.servers.chat_worker"),
            *(self.uri, DATABASE, self.file, str(diary), *USERS[number::WORKERS]),
            stdin=asyncio.subprocess.PIPE,
            cwd=PROJECT,
        )


async def break_things(cluster: Cluster, crowd: Crowd, chance: random.Random) -> None:
    """Do one harm after another: a kill or a pause of MongoDB, or the kill of a worker."""
    end = time.monotonic() + SECONDS
    harms = ["kill", "pause", "kill", "pause", "worker"]
    while time.monotonic() < end:
        for harm in chance.sample(harms, len(harms)):
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


async def held(cluster: Cluster, file: str) -> dict[str, list[int]]:
    """Return the turns of each user that MongoDB holds when nothing waits any more."""
    async with open_client(cluster.uri) as client:
        primary = MongoChatHistory(client, database=DATABASE, collection="chat", ttl_days=30)
        local = LocalChatHistory(file)
        async with ResilientChatHistory(primary, local):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await local.file.read(outbox.size):  # noqa: ASYNC110 - other processes send
                    await asyncio.sleep(0.1)
            turns = {}
            for name in USERS:
                stored = await primary.turns(Session(session_id=name))
                turns[name] = [int(turn.id) for turn in stored]
        return turns


CLUSTERS = [pytest.param(standalone, id="one server")]
if "CHAOS_SECONDS" in os.environ:  # three servers and their elections take their time
    CLUSTERS.append(pytest.param(replica_set, id="replica set"))


@pytest.mark.timeout(4 * SECONDS + 240)
@pytest.mark.parametrize("opened", CLUSTERS)
async def test_every_acknowledged_turn_is_there_once_and_in_order(
    tmp_path: Path, opened: Callable[[], AbstractContextManager[Cluster]]
) -> None:
    with opened() as cluster:
        crowd = Crowd(uri=cluster.uri, folder=tmp_path)
        await crowd.start()
        await break_things(cluster, crowd, random.Random(SEED))  # noqa: S311 - repeatable harm
        await crowd.talked(4)
        await crowd.stop()
        turns = await held(cluster, crowd.file)

    tried: dict[str, list[int]] = defaultdict(list)
    saved: dict[str, list[int]] = defaultdict(list)
    slowest = 0.0
    for what, name, number, *took in crowd.diaries():
        (tried if what == "try" else saved)[name].append(int(number))
        slowest = max(slowest, *map(float, took), 0.0)
    for name in USERS:
        assert turns[name] == sorted(set(turns[name])), name
        assert set(saved[name]) <= set(turns[name]) <= set(tried[name]), name
    assert slowest < SLOWEST_SECONDS
