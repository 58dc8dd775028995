"""aegra with our graph and app in it, as `aegra.json` says, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from chatbot.settings import PROJECT
from tests.servers.chatbot import ChatbotServer, free_port


@contextmanager
def running_aegra(folder: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the address of a server that answers."""
    port = free_port()
    log = folder / f"aegra-{port}.log"
    environment = {
        **os.environ,
        "AEGRA_CONFIG": str(PROJECT / "aegra.json"),
        "REDIS_BROKER_ENABLED": "true",
        "BLPOP_TIMEOUT_SECONDS": "1",  # what its workers wait for when it ends
        "CHATBOT_DATA_DIR": str(folder),
        "PYTHONUTF8": "1",
        **settings,
    }
    command = ["aegra_api.main:app", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            [sys.executable, "-m", "uvicorn", *command],
            cwd=PROJECT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = ChatbotServer(process, port, log)
    try:
        server.wait_until_ready()
        yield server.url
    finally:
        server.stop()
