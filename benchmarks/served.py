"""What a server adds to a turn: CPU of `chatbot serve` and `chatbot dev` against Python alone.

    python -m benchmarks.served

The same turns, in a crowd of `SESSIONS` at once, each with a first question and a follow-up: in
Python, over `/api/chat`, and as runs of LangGraph's API. CPU is that of the server's process,
its threads and its idling included; who asks, and the services, are processes of their own.
"""

import asyncio
import os
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx
from langgraph_sdk import get_client

from benchmarks.model_server import served
from benchmarks.report import Report, Table, Target, progress
from benchmarks.steps import MODEL, OF_SYSTEM, SECONDS, Services
from benchmarks.systems import OURS
from benchmarks.turn_figures import BY_HAND, CPU_BY_HAND, CPU_LIMIT, KINDS
from benchmarks.workers import working
from tests.servers.chatbot import chatbot_server
from tests.servers.ragflow import KEY

ROUNDS = 4
SESSIONS = 10  # the LangGraph server's jobs at once in `chatbot dev`
QUESTIONS = (KINDS["first turn"], KINDS["follow-up"])
MOST = 2  # times the limit of a turn in Python, under the LangGraph server
RUNS = "chatbot dev, runs of LangGraph's API"

Session = Callable[[str], Awaitable[None]]
Crowd = Callable[[], float]


async def over_http(url: str) -> None:
    """Ask a session's questions over `/api/chat`."""
    session = uuid.uuid4().hex
    async with httpx.AsyncClient(base_url=url, timeout=SECONDS) as client:
        for question in QUESTIONS:
            body = {"question": question, "session_id": session}
            async with client.stream("POST", "/api/chat", json=body) as reply:
                reply.raise_for_status()
                lines = [line async for line in reply.aiter_lines()]
            if not any(line.startswith('data: {"type":"content"') for line in lines):
                raise RuntimeError(lines[-5:])


async def by_runs(url: str) -> None:
    """Ask a session's questions as runs of a thread, and read what the graph streams."""
    async with get_client(url=url, timeout=SECONDS) as client:
        thread = (await client.threads.create())["thread_id"]
        for question in QUESTIONS:
            asked = {"messages": [{"role": "user", "content": question}]}
            stream = client.runs.stream(thread, "chatbot", input=asked, stream_mode="custom")
            events = [event.event async for event in stream]
            if "custom" not in events or "error" in events:
                raise RuntimeError(events[-5:])


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def ways(services: Services) -> Iterator[Mapping[str, Crowd]]:
    """Start each way and yield what asks a crowd and returns the CPU of one turn."""
    with ExitStack() as stack:
        workers = stack.enter_context(working(dict.fromkeys((BY_HAND, OURS), services)))
        crowds: dict[str, Crowd] = {}
        for name, worker in workers.items():
            crowds[name] = lambda worker=worker: float(
                worker.do("crowd", sessions=SESSIONS, questions=QUESTIONS)["cpu"]
            )
        for command in ("serve", "dev"):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            server = stack.enter_context(
                chatbot_server(folder, command, settings=_settings(services))
            )
            pid = (server.children() or [server.pid])[0]  # `dev` only watches over its server
            os.sched_setaffinity(pid, OF_SYSTEM)
            crowds[f"chatbot {command}, /api/chat"] = _asking(over_http, server.url, pid)
            if command == "dev":
                crowds[RUNS] = _asking(by_runs, server.url, pid)
        yield crowds


def _asking(session: Session, url: str, pid: int) -> Crowd:
    async def crowd() -> None:
        await asyncio.gather(*(session(url) for _ in range(SESSIONS)))

    def ask() -> float:
        before = cpu_of(pid)
        asyncio.run(crowd())
        return (cpu_of(pid) - before) / (SESSIONS * len(QUESTIONS))

    return ask


def _settings(services: Services) -> Mapping[str, str]:
    return {
        "LLM_MODEL": MODEL,
        "OPENAI_BASE_URL": f"{services.model}/v1",
        "RAGFLOW_BASE_URL": services.ragflow,
        "RAGFLOW_API_KEY": services.key,
        "LANGSMITH_TRACING": "false",
    }


def measure(crowds: Mapping[str, Crowd]) -> dict[str, list[float]]:
    """Let the ways take turns."""
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        for name, crowd in crowds.items():
            progress(f"served: round {number} of {ROUNDS}, {name}")
            took = crowd()
            if number:  # the first round warms up
                found[name].append(took)
    return found


def report(found: Mapping[str, list[float]]) -> Report:
    """Put the figures together."""
    ours, by_hand, runs = (median(found[name]) for name in (OURS, BY_HAND, RUNS))
    most = MOST * CPU_LIMIT / CPU_BY_HAND
    rows = [
        [name, f"{median(took) * 1000:.1f} ms", f"{median(took) / ours:.1f}"]
        for name, took in found.items()
    ]
    note = (
        f"CPU of the process, {SESSIONS} sessions at once, medians of {ROUNDS} rounds. "
        f"`{OURS}` is the chatbot in Python, without a server."
    )
    return Report(
        tables=[
            Table(
                title="What a server adds",
                columns=["", "CPU a turn", f"against {OURS}"],
                rows=rows,
                note=note,
            )
        ],
        targets=[
            Target(
                figure="CPU a turn under the LangGraph server",
                target=f"≤ {MOST * CPU_LIMIT} ms",
                measured=f"{runs * 1000:.1f} ms",
                met=runs * 1000 <= MOST * CPU_LIMIT,
            ),
            Target(
                figure=f"the same against {BY_HAND}",
                target=f"≤ {most:.1f} times",
                measured=f"{runs / by_hand:.1f} times",
                met=runs / by_hand <= most,
            ),
        ],
    )


def main() -> None:
    """Start servers and chatbots, measure, and hand in the report."""
    with served() as model, served("benchmarks.ragflow_server") as ragflow:
        services = Services(model=model, ragflow=ragflow, key=KEY)
        with ways(services) as crowds:
            found = measure(crowds)
    report(found).hand_in("served")


if __name__ == "__main__":
    main()
