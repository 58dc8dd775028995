"""Several worker processes on one port: a session may go from one to another at any time."""

import asyncio
import http.client
import os
import socket
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from chatbot.errors import ChatbotError
from chatbot.logs import configure_logging
from chatbot.settings import Settings
from chatbot.statistics import SHARED_COUNTS
from graphs.conversation import open_chatbot
from serving.cli.http_server import GRACE_SECONDS
from serving.cli.ports import address_of
from serving.http.app import create_app
from serving.http.shared_turns import open_shared_quotas
from serving.process import open_served

START_SECONDS = 120.0
POLL_SECONDS = 0.2


def serve_by_workers(bound: socket.socket, settings: Settings, workers: int) -> None:
    """Serve on a listening socket until a signal ends it; a worker that dies is replaced.

    Raises:
        ConfigurationError: A setting is wrong.
        ChatbotError: The workers could not start; the log says why.
    """
    asyncio.run(_try_out(settings))
    address = address_of(bound)
    threading.Thread(target=_tell, args=[bound, address], daemon=True).start()
    # What the workers count together: metrics, those that died included, and turns of users.
    with tempfile.TemporaryDirectory(prefix="chatbot-workers-") as folder:
        os.environ[SHARED_COUNTS] = folder
        config = uvicorn.Config(
            partial(worker_app, Path(folder)),
            factory=True,
            workers=workers,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        supervisor = Multiprocess(config, [bound])
        supervisor.run()
    if any(
        process.exitcode == uvicorn.config.STARTUP_FAILURE for process in supervisor.processes
    ):
        message = "A worker could not start. The log says why."
        raise ChatbotError(message)


def worker_app(folder: Path) -> FastAPI:
    """Return the app of one worker; all of them share `folder`."""
    settings = Settings.load()
    configure_logging(settings)
    quotas = partial(open_shared_quotas, folder)
    return create_app(settings, open_bot=open_served, open_quotas=quotas)


async def _try_out(settings: Settings) -> None:
    """Open everything once, so that what is wrong is told once, and indexes are there."""
    async with open_chatbot(settings):
        pass


def _tell(bound: socket.socket, address: str) -> None:
    """Say where the page is, once a worker answers."""
    host, port = bound.getsockname()[:2]
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        connection = http.client.HTTPConnection(host, port, timeout=5)
        try:
            connection.request("GET", "/health/live")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            time.sleep(POLL_SECONDS)
        else:
            print(f"The chatbot is at {address} (Ctrl-C stops it)", flush=True)  # noqa: T201
            return
        finally:
            connection.close()
