"""What a container with a disk that cannot be written needs: everything in memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from chatbot.bootstrap import open_ports
from chatbot.domain import Session
from chatbot.images.image import image_of
from chatbot.settings import MEMORY, Settings
from tests.integration.cli.terminal import environment
from tests.integration.history.stores import turn

SESSION = Session(session_id="s", user_id="alice")
DEAD = "mongodb://127.0.0.1:9"
PIXEL = image_of(b"\x89PNG\r\n\x1a\n" + bytes(20), 100)

# Tells every file that Python, and SQLite in it, opens to write.
WATCHED = """
import os, sys
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        is_written = arguments[0] != os.devnull
    elif event == "sqlite3.connect":
        is_written = arguments[0] != ":memory:"
    else:
        is_written = event == "os.mkdir"
    if is_written:
        os.write(2, f"WRITTEN {event} {arguments[0]}\\n".encode())
sys.dont_write_bytecode = True
sys.addaudithook(watch)
from serving.cli import main
main()
"""


def asked(data_dir: Path, **settings: str) -> tuple[str, str]:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", WATCHED, "ask", "Who wrote Walden?"],
        env=environment(data_dir, settings),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="without MongoDB"),
        pytest.param({"MONGODB_URI": DEAD}, id="with MongoDB away"),
    ],
)
def test_a_turn_in_memory_writes_no_file(settings: dict[str, str]) -> None:
    out, err = asked(Path(MEMORY), **settings)
    assert "Thoreau" in out
    assert "WRITTEN" not in err
    assert "turn ended" not in err  # the log is not in the way


def test_a_turn_with_a_folder_writes_its_files(tmp_path: Path) -> None:
    _, err = asked(tmp_path / "data")
    assert f"WRITTEN sqlite3.connect {tmp_path / 'data' / 'history.sqlite3'}" in err
    assert f"WRITTEN sqlite3.connect {tmp_path / 'data' / 'leases.sqlite3'}" in err


@pytest.mark.parametrize("uri", [None, DEAD])
async def test_conversations_leases_and_images_are_there_in_memory(uri: str | None) -> None:
    settings = Settings.model_validate({"chatbot_data_dir": MEMORY, "mongodb_uri": uri})
    async with open_ports(settings) as ports:
        history, leases, images = ports.history, ports.leases, ports.images
        assert leases is not None
        assert images is not None
        await leases.claim(SESSION, turn("1"))
        running = await leases.running(SESSION)
        assert running is not None
        assert running.id == "1"
        await history.save(SESSION, turn("1"))
        await images.keep_image(SESSION, PIXEL)
        assert [each.id for each in (await history.load(SESSION, limit=9)).turns] == ["1"]
        assert await images.find_image("alice", PIXEL.name) == PIXEL
