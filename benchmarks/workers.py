"""Starts a process for each system and gives it jobs."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

from benchmarks.steps import Services
from benchmarks.systems import EVERY_WAY, ROOT

QUIET = {"HAYSTACK_TELEMETRY_ENABLED": "False"}  # nobody is called but the services


class WorkerError(Exception):
    """The system's process has ended; why, its standard error output says."""


class JobError(Exception):
    """The system could not do this job, and goes on."""


class Worker:
    """One system in a process of its own."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name = name
        self._process = process

    def begin(self, do: str, **job: Any) -> None:  # noqa: ANN401 - JSON
        """Give it a job."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(json.dumps({"do": do, **job}) + "\n")
        self._process.stdin.flush()

    def reply(self) -> Any:  # noqa: ANN401 - JSON
        """Wait for what came of it.

        Raises:
            JobError: It could not be done.
            WorkerError: The process has ended.
        """
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(self.name)
        reply = json.loads(line)
        if "error" in reply:
            raise JobError(reply["error"])
        return reply

    def do(self, do: str, **job: Any) -> Any:  # noqa: ANN401 - JSON
        """Give it a job and wait."""
        self.begin(do, **job)
        return self.reply()


def command(name: str, services: Services) -> list[str]:
    """Return what runs a system as a process."""
    way = EVERY_WAY[name]
    return [way.python, "-m", "benchmarks.worker", name, json.dumps(asdict(services))]


@contextmanager
def working(ways: Mapping[str, Services]) -> Iterator[dict[str, Worker]]:
    """Start a process for each system, with its services, and end them at the end."""
    with ExitStack() as stack:
        workers = {}
        for name, services in ways.items():
            process = subprocess.Popen(  # noqa: S603 - ourselves
                command(name, services),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=os.environ | QUIET,
                process_group=0,  # Ctrl-C is for the one who measures
            )
            stack.enter_context(process)
            stack.callback(process.terminate)
            workers[name] = Worker(name, process)
        for worker in workers.values():
            worker.reply()  # it is open
        yield workers
