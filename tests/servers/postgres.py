"""A real PostgreSQL on 127.0.0.1, in a folder of its own."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.chatbot import free_port

START_SECONDS = 60.0
USER = "postgres"
MISSING = "These tests need PostgreSQL (on Debian and Ubuntu: apt-get install postgresql)."


@contextmanager
def running_postgres() -> Iterator[str]:
    """Yield the address of a new, empty database."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    owner: Mapping[str, Any] = {}
    if os.geteuid() == 0:  # as root it refuses to run
        shutil.chown(folder, USER, USER)
        owner = {"user": USER, "group": USER, "extra_groups": []}
    try:
        subprocess.run(  # noqa: S603 - our own command line
            [_program("initdb"), "--auth=trust", f"--username={USER}", "--no-sync", "data"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            **owner,
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command line
                [
                    *(_program("postgres"), "-D", "data", "-p", str(port), "-k", str(folder)),
                    *("-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"),
                ],
                cwd=folder,
                stdout=log,
                stderr=log,
                **owner,
            )
        try:
            _await_answer(process, port, folder)
            yield f"postgresql://{USER}@127.0.0.1:{port}/{USER}"
        finally:
            process.send_signal(signal.SIGINT)  # its fast shutdown
            process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await_answer(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    asking = [_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if subprocess.run(asking, check=False).returncode == 0:  # noqa: S603 - as above
            return
        time.sleep(0.1)
    message = f"PostgreSQL did not start:\n{(folder / 'log').read_text(errors='replace')}"
    raise RuntimeError(message)


def _program(name: str) -> str:
    """Return the path of one of its programs; Debian keeps them out of the search path."""
    kept = sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
    found = kept[-1] if kept else shutil.which(name)
    if found is None:
        raise RuntimeError(MISSING)
    return found
