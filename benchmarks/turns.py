"""What a whole turn costs: first token, CPU, many sessions at once, memory.

    python -m benchmarks.turns [part of a system's name ...]

The model server takes 300 ms to the first token of a reply and then sends 50 tokens a second,
60 for an answer; RAGFlow's retrieval takes 150 ms. Each runs in a process of its own. Every
system does the same steps: route by a tool call, retrieve, answer. CPU is that of this process
alone. Ours runs as it is served: leases, SQLite, citations, time limits; without traces and
checkpoints.
"""

import asyncio
import gc
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

from benchmarks.clients import MODEL
from benchmarks.handwritten import with_aiohttp, with_httpx
from benchmarks.model_server import SUBJECT, Pace, served
from chatbot.settings import Settings
from tests.servers.ragflow import KEY

FIRST = f"How long does the warranty of the {SUBJECT} pump last?"
FOLLOW_UP = "And in months?"
SMALL_TALK = "hello, how are you?"
SINGLE_TURNS = 6
CROWDS = (50, 200)
STREAMS = 200
SESSIONS = 100  # at once, several times
QUICK = f"hello: {Pace(tokens=20, gap=0.0, burst=20)}"
TARGETS = "target: 660 / 1100 / 630 ms, 20 ms of CPU, 40 turns/s at 200 sessions"


class System(Protocol):
    """Answers one question of a session in pieces."""

    def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the answer's pieces."""
        ...


class Ours:
    """The chatbot as Python uses it."""

    def __init__(self, bot: Any) -> None:  # noqa: ANN401 - imported where it is opened
        self._bot = bot

    async def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """See `System`."""
        async with aclosing(self._bot.stream(question, session_id=session_id)) as events:
            async for event in events:
                if event["type"] == "content":
                    yield event["data"]
                elif event["type"] == "error":
                    raise RuntimeError(event["data"]["message"])


@asynccontextmanager
async def ours(model_url: str, ragflow_url: str) -> AsyncIterator[System]:
    """Open the chatbot with these services and its embedded history."""
    from graphs.conversation import open_chatbot  # noqa: PLC0415 - only one of several systems

    with TemporaryDirectory() as folder:
        settings = Settings(
            chatbot_data_dir=Path(folder),
            llm_model=MODEL,
            openai_base_url=f"{model_url}/v1",
            ragflow_base_url=ragflow_url,
            ragflow_api_key=cast("Any", KEY),
        )
        async with open_chatbot(settings) as bot:
            yield Ours(bot)


Opening = Callable[[str, str], AbstractAsyncContextManager[System]]
SYSTEMS: dict[str, Opening] = {
    "httpx by hand": with_httpx,
    "aiohttp by hand": with_aiohttp,
    "ours": ours,
}


@dataclass(frozen=True, kw_only=True)
class Took:
    """How long a turn took until its first piece and until its end, in seconds."""

    first: float
    whole: float


async def ask(system: System, question: str, session_id: str) -> Took:
    """Ask and read the whole answer."""
    started = time.perf_counter()
    first = 0.0
    async with aclosing(cast("Any", system.stream(question, session_id))) as pieces:
        async for _ in pieces:
            first = first or time.perf_counter() - started
    return Took(first=first, whole=time.perf_counter() - started)


async def single(system: System) -> dict[str, tuple[float, float]]:
    """Return first token and CPU, both in milliseconds, of each kind of turn, one at a time."""
    kinds = {"first turn": FIRST, "follow-up": FOLLOW_UP, "small talk": SMALL_TALK}
    found: dict[str, tuple[float, float]] = {}
    firsts: dict[str, list[float]] = {kind: [] for kind in kinds}
    cpu = dict.fromkeys(kinds, 0.0)
    for number in range(SINGLE_TURNS + 1):
        session_id = uuid.uuid4().hex
        for kind, question in kinds.items():
            session = uuid.uuid4().hex if kind == "small talk" else session_id
            started = time.process_time()
            took = await ask(system, question, session)
            if number:  # the very first ones warm up
                cpu[kind] += time.process_time() - started
                firsts[kind].append(took.first)
    for kind in kinds:
        median = sorted(firsts[kind])[SINGLE_TURNS // 2]
        found[kind] = (median * 1000, cpu[kind] / SINGLE_TURNS * 1000)
    return found


async def crowd(system: System, sessions: int) -> tuple[float, float, Sequence[Took]]:
    """Return turns a second, CPU a turn, and each turn, of two turns in each session."""

    async def session() -> list[Took]:
        session_id = uuid.uuid4().hex
        return [await ask(system, text, session_id) for text in (FIRST, FOLLOW_UP)]

    started, cpu = time.perf_counter(), time.process_time()
    turns = [
        t for took in await asyncio.gather(*(session() for _ in range(sessions))) for t in took
    ]
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    return len(turns) / wall, used / len(turns) * 1000, turns


async def memory(system: System) -> tuple[float, float]:
    """Return how many KiB an open stream takes, and a session of a turn that has ended."""
    slow = f"hello: {Pace(tokens=1000, gap=0.05)}"
    await asyncio.gather(*(ask(system, QUICK, uuid.uuid4().hex) for _ in range(10)))
    gc.collect()
    before = resident()
    running = [asyncio.create_task(ask(system, slow, uuid.uuid4().hex)) for _ in range(STREAMS)]
    await asyncio.sleep(STREAMS / 40)
    stream = (resident() - before) / STREAMS
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for _ in range(5):  # what is allocated once
        await asyncio.gather(*(ask(system, QUICK, uuid.uuid4().hex) for _ in range(SESSIONS)))
    gc.collect()
    before = resident()
    for _ in range(5):
        await asyncio.gather(*(ask(system, QUICK, uuid.uuid4().hex) for _ in range(SESSIONS)))
    gc.collect()
    return stream, (resident() - before) / (5 * SESSIONS)


def resident() -> float:
    """Return the resident memory of this process in KiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4


async def measure(name: str, model_url: str, ragflow_url: str) -> None:
    """Print the figures of one system."""
    _print(f"== {name}")
    async with SYSTEMS[name](model_url, ragflow_url) as system:
        for kind, (first, cpu) in (await single(system)).items():
            _print(f"{kind:12} first token {first:6.0f} ms   CPU {cpu:6.1f} ms")
        for sessions in CROWDS:
            rate, cpu, turns = await crowd(system, sessions)
            whole = sorted(took.whole for took in turns)
            first = sorted(took.first for took in turns)
            middle = len(turns) // 2
            _print(
                f"{sessions:4} sessions  {rate:5.1f} turns/s   CPU {cpu:6.1f} ms   "
                f"first token {first[middle]:.2f} s, slowest {first[-1]:.2f}   "
                f"whole {whole[middle]:.2f} s, slowest {whole[-1]:.2f}"
            )
        stream, session = await memory(system)
        _print(f"memory        {stream:5.0f} KiB an open stream, {session:5.1f} KiB a session")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Start the servers and measure each system."""
    wanted = sys.argv[1:]
    with served() as model_url, served("benchmarks.ragflow_server") as ragflow_url:
        for name in SYSTEMS:
            if not wanted or any(part in name for part in wanted):
                asyncio.run(measure(name, model_url, ragflow_url))
        _print(TARGETS)


if __name__ == "__main__":
    main()
