"""A cold start: from nothing to the first token of an answer on the standard output.

    python -m benchmarks.start

Each is a new process, in a new folder, that is asked one question and ended at its first byte.
Their turns alternate; the files are in the page cache and compiled, as after a first use.
"""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.model_server import served
from benchmarks.report import Chart, Report, Table, Target, progress
from benchmarks.steps import MODEL, Services
from benchmarks.systems import OURS, ROOT, installed
from benchmarks.turn_figures import KINDS
from benchmarks.workers import QUIET, command
from tests.servers.ragflow import KEY

ROUNDS = 5
LIMIT = 2.5  # seconds
QUESTION = KINDS["first turn"]
EMBEDDED = "How many days of annual leave do I get?"
WITH_MODEL = OURS
WITHOUT_MODEL = f"{OURS}, no model"


def commands(services: Services) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
    """Return each command and its environment."""
    chatbot = str(Path(sys.executable).with_name("chatbot"))
    embedded = {"KNOWLEDGE_DIR": str(ROOT / "examples" / "knowledge")}
    connected = {
        "LLM_MODEL": MODEL,
        "OPENAI_BASE_URL": f"{services.model}/v1",
        "RAGFLOW_BASE_URL": services.ragflow,
        "RAGFLOW_API_KEY": services.key,
    }
    return {
        WITH_MODEL: ([chatbot, "ask", QUESTION], connected),
        WITHOUT_MODEL: ([chatbot, "ask", EMBEDDED], embedded),
        **{
            name: ([*command(name, services), QUESTION], {"PYTHONPATH": str(ROOT)})
            for name in installed()
            if name != OURS
        },
    }


def first_byte(called: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the seconds until the command prints something."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    # In a folder of its own nothing of the turn is left that was killed before.
    with TemporaryDirectory() as folder:
        (Path(folder) / ".env").touch()  # so that no other settings are read
        return _first_byte(called, {**kept, **QUIET, **environment}, folder)


def _first_byte(called: Sequence[str], environment: Mapping[str, str], folder: str) -> float:
    started = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 - our own commands
        called,
        stdout=subprocess.PIPE,
        cwd=folder,
        env={**environment, "CHATBOT_DATA_DIR": folder},
        process_group=0,  # Ctrl-C is for the one who measures
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            if not process.stdout.read(1):
                raise RuntimeError(json.dumps(called))
            return time.perf_counter() - started
        finally:
            process.kill()


def measure(services: Services) -> dict[str, list[float]]:
    """Let the commands take turns."""
    took: dict[str, list[float]] = defaultdict(list)
    every = commands(services)
    for number in range(ROUNDS + 1):
        for name, (called, environment) in every.items():
            progress(f"start: round {number} of {ROUNDS}, {name}")
            seconds = first_byte(called, environment)
            if number:  # the very first ones compile
                took[name].append(seconds)
    return took


def report(took: Mapping[str, Sequence[float]]) -> Report:
    """Put the figures together."""
    ours = median(took[WITH_MODEL])
    return Report(
        tables=[
            Table(
                title="Cold start",
                columns=["", "first token, median", "fastest"],
                rows=[
                    [name, f"{median(each):.2f} s", f"{min(each):.2f} s"]
                    for name, each in took.items()
                ],
                note=(
                    "A new process (ours: `chatbot ask`) to the first byte of its answer, "
                    f"{ROUNDS} rounds. The time of the model and of the retrieval is in it, "
                    "about 0.9 s where the steps wait for each other; without a model there is "
                    "neither."
                ),
            )
        ],
        targets=[
            Target(
                figure="`chatbot ask` to the first token",
                target=f"≤ {LIMIT} s",
                measured=f"{ours:.2f} s",
                met=ours <= LIMIT,
            )
        ],
        charts=[
            Chart(
                title="Cold start to the first token",
                unit="s",
                bars={name: median(each) for name, each in took.items()},
                target=LIMIT,
            )
        ],
    )


def main() -> None:
    """Start the servers and measure."""
    with served() as model_url, served("benchmarks.ragflow_server") as ragflow_url:
        took = measure(Services(model=model_url, ragflow=ragflow_url, key=KEY))
    report(took).hand_in("start")


if __name__ == "__main__":
    main()
