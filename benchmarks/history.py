"""Whether a long conversation makes the first token later: ours, and loading all of it.

    python -m benchmarks.history

Conversations of 10 to 10,000 messages stand in a real MongoDB. The model answers at once, so
what is left is what the history and the steps take. The ways take turns, sizes too.
"""

import asyncio
import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from langchain_core.messages import AIMessage, HumanMessage, message_to_dict
from pymongo import MongoClient

from benchmarks.model_server import served
from benchmarks.ours import settings
from benchmarks.report import Chart, Report, Table, Target, progress
from benchmarks.steps import Services
from benchmarks.systems import LOADS_ALL, LONG_WAYS, OURS
from benchmarks.whole_history import history_of
from benchmarks.worker import QUICK
from benchmarks.workers import Worker, working
from graphs.conversation import open_chatbot
from tests.servers.mongod import Mongod
from tests.servers.ragflow import KEY

SIZES = (10, 100, 1_000, 10_000)
ROUNDS = 9
GROWTH = 10.0  # ms that the longest may take more than the shortest
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = "How long does the warranty of the pump last, if it was bought abroad? ({})"
ANSWER = "It lasts two years from the day of delivery, wherever the pump was bought [1]. " * 3


async def fill(services: Services) -> None:
    """Write the conversations for both ways."""
    client: MongoClient[dict[str, object]] = MongoClient(services.mongodb)
    with client, TemporaryDirectory() as folder:
        async with open_chatbot(settings(services, Path(folder))) as bot:
            for size in SIZES:
                progress(f"history: writing {size} messages")
                await bot.import_(_archive(size))
                _write_plainly(client, size)


def _archive(size: int) -> dict[str, object]:
    turns = [
        {
            "id": f"{size}-{number}",
            "question": QUESTION.format(number),
            "answer": ANSWER,
            "started_at": (STARTED + timedelta(minutes=number)).isoformat(),
            "record": {"intent": "knowledge_base"},
        }
        for number in range(size // 2)
    ]
    return {"session_id": _session(size), "title": "The pump", "turns": turns}


def _write_plainly(client: MongoClient[dict[str, object]], size: int) -> None:
    history = history_of(client, _session(size))
    history.collection.create_index(history.session_id_key)
    history.collection.insert_many(
        {
            history.session_id_key: history.session_id,
            history.history_key: json.dumps(message_to_dict(message)),
        }
        for number in range(size // 2)
        for message in (HumanMessage(QUESTION.format(number)), AIMessage(ANSWER))
    )


def _session(size: int) -> str:
    return f"of-{size}-messages"


def measure(workers: dict[str, Worker]) -> dict[str, dict[int, float]]:
    """Return the first token of each way in each conversation, in milliseconds."""
    took: dict[tuple[str, int], list[float]] = defaultdict(list)
    for number in range(ROUNDS + 1):
        progress(f"history: round {number} of {ROUNDS}")
        for size in SIZES:
            for name, worker in workers.items():
                first = worker.do("turn", question=QUICK, session=_session(size))["first"]
                if number:  # the very first ones warm up
                    took[name, size].append(first * 1000)
    return {name: {size: median(took[name, size]) for size in SIZES} for name in workers}


def report(found: dict[str, dict[int, float]]) -> Report:
    """Put the figures together."""
    rows = [
        [name, *(f"{milliseconds:,.0f}" for milliseconds in of.values())]
        for name, of in found.items()
    ]
    ours = found[OURS]
    grown = ours[SIZES[-1]] - ours[SIZES[0]]
    return Report(
        tables=[
            Table(
                title="Long conversations",
                columns=["", *(f"{size:,} messages" for size in SIZES)],
                rows=rows,
                note=(
                    f"Milliseconds to the first token, medians of {ROUNDS} rounds, with a "
                    "model that answers at once: what is left is the work on the history, kept "
                    "in MongoDB, and the steps. The other way reads all with LangChain's class "
                    "and gives the model as many turns as ours does."
                ),
            )
        ],
        targets=[
            Target(
                figure=f"first token after {SIZES[-1]:,} messages against {SIZES[0]}",
                target=f"≤ {GROWTH:.0f} ms later",
                measured=f"{grown:+.0f} ms",
                met=grown <= GROWTH,
            )
        ],
        charts=[
            Chart(
                title="First token, long conversations",
                unit="ms",
                bars={
                    f"{label}, {size:,}": found[name][size]
                    for name, label in ((OURS, OURS), (LOADS_ALL, "loads all"))
                    for size in SIZES[::3]
                },
            )
        ],
    )


def main() -> None:
    """Start the servers, write the conversations and measure."""
    with (
        served() as model_url,
        served("benchmarks.ragflow_server") as ragflow_url,
        Mongod() as mongod,
    ):
        services = Services(model=model_url, ragflow=ragflow_url, key=KEY, mongodb=mongod.uri)
        asyncio.run(fill(services))
        with working(dict.fromkeys(LONG_WAYS, services)) as workers:
            found = measure(workers)
    report(found).hand_in("history")


if __name__ == "__main__":
    main()
