"""Users in several processes that share a machine, a MongoDB and a model."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.servers import chat_worker

USERS = [f"user-{number}" for number in range(20)]
SHARED = USERS[:4]  # these talk in several processes at the same time
WORKERS, SHARERS = 3, 2
DATABASE = "chaos"
PATIENCE_SECONDS = 240
CONTEXT = get_context("forkserver")


Line = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A process, and what tells it to stop."""

    process: ForkServerProcess
    until: Event

    async def ended(self) -> int | None:
        """Return the exit code once there is one."""
        await asyncio.to_thread(self.process.join)
        return self.process.exitcode


@dataclass(kw_only=True)
class Crowd:
    """Worker processes that share one folder, and the diaries they write."""

    uri: str
    folder: Path
    workers: list[Worker] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Start the workers, and return when every user has had an answer."""
        (self.folder / "documents").mkdir()
        # Forked, so that each has what is imported once.
        CONTEXT.set_forkserver_preload([chat_worker.__name__])
        self.workers = [self._worker(number) for number in range(WORKERS)]
        await self.talked(1)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let nothing go on, whatever came of it."""
        for worker in self.workers:
            worker.process.kill()
            await worker.ended()

    async def talked(self, turns: int) -> None:
        """Return when so many more turns of every user have been saved."""
        wanted = {name: count + turns for name, count in self._saved().items()}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(count < wanted[name] for name, count in self._saved().items()):  # noqa: ASYNC110 - other processes write
                await asyncio.sleep(0.2)

    async def replace(self, number: int) -> None:
        """Kill a worker and start another in its place."""
        self.workers[number].process.kill()
        await self.workers[number].ended()
        self.workers[number] = self._worker(number)

    async def stop(self) -> None:
        """Let all end in order."""
        for worker in self.workers:
            worker.until.set()
        assert [await worker.ended() for worker in self.workers] == [0] * WORKERS

    def diaries(self) -> Sequence[Sequence[Line]]:
        """Return what each worker, with those in whose place it stands, wrote down."""
        files = [self._diary(number).read_text(encoding="utf-8") for number in range(WORKERS)]
        return [[json.loads(line) for line in file.splitlines()] for file in files]

    def _saved(self) -> Counter[str]:
        saved = Counter(dict.fromkeys(USERS, 0))
        for diary in self.diaries():
            saved.update(line["session"] for line in diary if line["what"] == "end")
        return saved

    def _diary(self, number: int) -> Path:
        return self.folder / f"diary-{number}"

    @property
    def _settings(self) -> str:
        settings = {
            "chatbot_data_dir": str(self.folder),
            "knowledge_dir": str(self.folder / "documents"),
            "mongodb_uri": self.uri,
            "mongodb_db": DATABASE,
        }
        return json.dumps(settings)

    def _worker(self, number: int) -> Worker:
        diary, until = self._diary(number), CONTEXT.Event()
        diary.touch()
        names = (SHARED if number < SHARERS else []) + USERS[len(SHARED) :][number::WORKERS]
        process = CONTEXT.Process(
            target=chat_worker.run, args=(str(diary), self._settings, names, until), daemon=True
        )
        process.start()
        return Worker(process=process, until=until)
