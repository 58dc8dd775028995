"""A process with one system in it, which does as it is told and says how long it took.

    python -m benchmarks.worker SYSTEM SERVICES      reads a job a line, as JSON, and answers so
    python -m benchmarks.worker SYSTEM SERVICES QUESTION    prints the answer, as a script would

CPU is that of this process alone, and it has one core for itself if there are several.
"""

import asyncio
import gc
import json
import os
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from benchmarks.model_server import Pace
from benchmarks.steps import OF_SYSTEM, SECONDS, Services
from benchmarks.systems import EVERY_WAY, System

QUICK = f"hello: {Pace(tokens=20, gap=0.0, burst=20)}"
SLOW = f"hello: {Pace(tokens=100, gap=0.5)}"


async def turn(system: System, job: Mapping[str, Any]) -> dict[str, float]:
    """Ask and read the whole answer; return seconds."""
    started, cpu = time.perf_counter(), time.process_time()
    first = 0.0
    pieces = system.stream(job["question"], job["session"])
    async with aclosing(cast("Any", pieces)) as answer:
        async for _ in answer:
            first = first or time.perf_counter() - started
    whole = time.perf_counter() - started
    return {"first": first, "whole": whole, "cpu": time.process_time() - cpu}


async def crowd(system: System, job: Mapping[str, Any]) -> dict[str, Any]:
    """Let many sessions ask the questions one after the other, all sessions at once."""

    async def session() -> tuple[float, list[float]]:
        began, id_ = time.perf_counter(), uuid.uuid4().hex
        firsts = []
        for question in job["questions"]:
            took = await turn(system, {"question": question, "session": id_})
            firsts.append(took["first"])
        return time.perf_counter() - began, firsts

    started, cpu = time.perf_counter(), time.process_time()
    sessions = await asyncio.gather(*(session() for _ in range(job["sessions"])))
    wall, used = time.perf_counter() - started, time.process_time() - cpu
    turns = len(sessions) * len(job["questions"])
    return {
        "rate": turns / wall,
        "cpu": used / turns,
        "sessions": sorted(took for took, _ in sessions),
        "firsts": sorted(first for _, firsts in sessions for first in firsts),
    }


async def memory(system: System, job: Mapping[str, Any]) -> dict[str, float]:
    """Return the KiB of the process, of an open stream, and of a session after its turn."""

    async def quick() -> None:
        jobs = (
            {"question": QUICK, "session": uuid.uuid4().hex} for _ in range(job["sessions"])
        )
        await asyncio.gather(*(turn(system, job) for job in jobs))

    async def open_stream() -> None:
        pieces = system.stream(SLOW, uuid.uuid4().hex)
        async with aclosing(cast("Any", pieces)) as answer:
            async for _ in answer:
                begun.release()

    for _ in range(job["repeated"]):  # what is allocated once
        await quick()
    settled = _resident()
    for _ in range(job["repeated"]):
        await quick()
    before = _resident()
    session = (before - settled) / (job["repeated"] * job["sessions"])
    begun = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(open_stream()) for _ in range(job["streams"])]
        for _ in tasks:
            await begun.acquire()
        stream = (_resident() - before) / len(tasks)
        for task in tasks:
            task.cancel()
    return {"process": settled, "stream": stream, "session": session}


def _resident() -> float:
    """Return the resident memory of this process in KiB, without its garbage."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


JOBS: dict[str, Callable[[System, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]] = {
    "turn": turn,
    "crowd": crowd,
    "memory": memory,
}


async def work(name: str, services: Services) -> None:
    """Do the jobs that come in until there are no more."""
    async with EVERY_WAY[name].open(services) as system:
        _say({})
        while line := await asyncio.to_thread(sys.stdin.readline):
            job = json.loads(line)
            try:
                async with asyncio.timeout(SECONDS):
                    reply = await JOBS[job["do"]](system, job)
            except Exception as error:  # noqa: BLE001 - told, and the next job may go well
                reply = {"error": f"{type(error).__name__} {error}".strip()}
            _say(reply)


def _say(reply: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


async def answer(name: str, services: Services, question: str) -> None:
    """Print the answer as it comes."""
    async with EVERY_WAY[name].open(services) as system:
        async for text in system.stream(question, "start"):
            sys.stdout.write(text)
            sys.stdout.flush()


def main() -> None:
    """Work, or answer one question."""
    name, services, *questions = sys.argv[1:]
    opened = Services(**json.loads(services))
    if questions:
        asyncio.run(answer(name, opened, questions[0]))
        return
    os.sched_setaffinity(0, OF_SYSTEM)
    asyncio.run(work(name, opened))


if __name__ == "__main__":
    main()
