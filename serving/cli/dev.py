"""`chatbot dev`: starts the LangGraph server with our app in it, and watches over it."""

import http.client
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from chatbot.errors import ChatbotError, ConfigurationError, PromptError
from chatbot.settings import PROJECT, Settings
from serving.cli.ports import listen
from serving.cli.relay import Relay
from serving.cli.signals import ENDING
from serving.cli.words import complain

HOST = "127.0.0.1"
JOBS = "10"  # the server's own default is one turn at a time
START_SECONDS = 120
POLL_SECONDS = 0.1
HEALTH_SECONDS = 10
GRACE_SECONDS = 8
KILLED_AFTER_SIGNALS = 3
FAILED = 1
MISCONFIGURED = 2
CONFIGURATION_ERRORS = {ConfigurationError.__name__, PromptError.__name__}


def dev(port: int) -> int:
    """Run the server until a signal ends it, and return the exit code.

    Raises:
        ConfigurationError: A setting is wrong, the port is taken, or the server is missing.
    """
    settings = Settings.load()
    config = PROJECT / "langgraph.json"
    if importlib.util.find_spec("langgraph_api") is None or not config.is_file():
        message = (
            "The LangGraph server is not installed. Install it with "
            "pip install 'ragflow-chatbot[server]', or use `chatbot serve`, which needs none."
        )
        raise ConfigurationError(message)
    folder = settings.data_dir
    if folder is None:
        message = (
            "The LangGraph server keeps its threads in CHATBOT_DATA_DIR: set it to a folder, "
            "or use `chatbot serve`, which needs none."
        )
        raise ConfigurationError(message)
    with listen(HOST, port, "make run PORT=8123") as bound:
        port = bound.getsockname()[1]
    try:
        relay = Relay(settings, folder)
    except OSError as error:
        message = f"CHATBOT_DATA_DIR cannot be written: {error}. Set it to another folder."
        raise ConfigurationError(message) from None
    server = _Server(settings, folder, port, relay)
    for number in (signal.SIGINT, *ENDING):
        signal.signal(number, server.on_signal)
    return server.watch()


class _Server:
    """The server's process, which never outlives this one."""

    def __init__(self, settings: Settings, folder: Path, port: int, relay: Relay) -> None:
        self._port = port
        self._relay = relay
        self._signals = 0
        self._kill_at = float("inf")
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "serving.cli.langgraph_process", *_options(port)],
            cwd=folder,  # it keeps its state where it runs
            env=_environment(settings, folder),
            stdin=subprocess.PIPE,  # its end tells the process that this one is gone
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0,  # Ctrl-C reaches it once, from here
        )
        self._reader = threading.Thread(
            target=relay.run, args=(self._process.stdout,), daemon=True
        )
        self._reader.start()

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """End the server: gently at first, at once when the signal comes again and again."""
        del number, frame
        self._signals += 1
        if self._signals >= KILLED_AFTER_SIGNALS:
            self._process.kill()
        else:
            self._process.send_signal(signal.SIGINT)
            self._kill_at = min(self._kill_at, time.monotonic() + GRACE_SECONDS)

    def watch(self) -> int:
        """Tell when the server answers, wait for its end, and return the exit code."""
        try:
            if self._wait_until_ready():
                address = f"http://{HOST}:{self._port}"
                self._relay.ready = True
                print(f"The chatbot is at {address} (Ctrl-C stops it)", flush=True)  # noqa: T201
            while not self._ended(1.0):
                if time.monotonic() > self._kill_at:
                    self._process.kill()
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(1.0)
        if self._signals:
            return 0
        name, reason = self._relay.failure() or ("", "The server ended by itself.")
        complain(f"{reason}\nWhat it wrote is in {self._relay.path}.")
        return MISCONFIGURED if name in CONFIGURATION_ERRORS else FAILED

    def _wait_until_ready(self) -> bool:
        give_up = time.monotonic() + START_SECONDS
        while not self._signals and not self._ended(POLL_SECONDS):
            if _answers(self._port):
                return True
            if time.monotonic() > give_up:
                message = f"The server does not answer. What it wrote is in {self._relay.path}."
                raise ChatbotError(message)
        return False

    def _ended(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def _options(port: int) -> list[str]:
    return [
        "--no-browser",
        "--no-reload",
        *("--host", HOST, "--port", str(port)),
        *("--n-jobs-per-worker", JOBS),
        *("--config", str(PROJECT / "langgraph.json")),
    ]


def _environment(settings: Settings, folder: Path) -> dict[str, str]:
    """Return the merged settings for the server, with paths that mean the same there."""
    environment = {
        "LANGSMITH_TRACING": "false",
        **os.environ,
        "LANGGRAPH_NO_VERSION_CHECK": "1",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LOG_JSON": "true",
        "LOG_LEVEL": settings.log_level,
        "CHATBOT_DATA_DIR": str(folder),
        "KNOWLEDGE_DIR": str(settings.path(settings.knowledge_dir)),
        "PYTHONUNBUFFERED": "1",
    }
    if settings.prompts_dir is not None:
        environment["PROMPTS_DIR"] = str(settings.path(settings.prompts_dir))
    return environment


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
