"""A LangSmith that is dead, refuses or hangs takes nothing from turns, nor from the end."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from chatbot.traces.client import CLOSE_SECONDS, READ_SECONDS
from graphs import open_chatbot
from tests.servers.chatbot import free_port
from tests.servers.model import Brain, ModelServer
from tests.servers.traces import trace_sink
from tests.stopwatch import Stopwatch
from tests.trajectories import tracing

TURNS = 5
GENEROUS = 2.0  # seconds a turn takes at most on a busy machine: a tenth without anything else


@contextmanager
def langsmith(fault: str) -> Iterator[str]:
    """Give the address of a LangSmith that fails in this way."""
    if fault == "dead":
        yield f"http://127.0.0.1:{free_port()}"
        return
    with trace_sink() as sink:
        sink.fault = int(fault) if fault.isdigit() else fault
        yield sink.url


@pytest.mark.parametrize("fault", ["dead", "hang", "401", "429", "500"])
async def test_turns_do_not_wait_for_it(tmp_path: Path, fault: str) -> None:
    with ModelServer(Brain()) as model, langsmith(fault) as url, tracing(url):
        settings = Settings(
            chatbot_data_dir=tmp_path,
            llm_model="scripted",
            openai_base_url=model.base_url,
            openai_api_key=SecretStr("k"),
        )
        async with open_chatbot(settings) as bot:
            await bot.ask("Hello")  # what is loaded once is loaded now
            took = []
            for _ in range(TURNS):
                stopwatch = Stopwatch()
                assert (await bot.ask("Hello")).text == "This is the answer."
                took.append(stopwatch.seconds())
            closing = Stopwatch()
        closed = closing.seconds()
    # The quickest of them: one may have been held up by something else on this machine.
    assert min(took) < GENEROUS
    # What is left is given up, and a request that is under way is not waited for for ever.
    assert closed < CLOSE_SECONDS + READ_SECONDS + GENEROUS


async def test_what_was_not_traced_is_not_waited_for(tmp_path: Path) -> None:
    others = set(threading.enumerate())
    with langsmith("hang") as url, tracing(url):
        async with open_chatbot(Settings(chatbot_data_dir=tmp_path)):
            stopwatch = Stopwatch()
        assert stopwatch.seconds() < CLOSE_SECONDS
        # It is asked what it takes when it is first opened; the end of a process does not wait
        # for threads such as these.
        asking = [
            each for each in set(threading.enumerate()) - others if "tracing" in each.name
        ]
        assert asking
        assert all(each.daemon for each in asking)


async def test_a_process_ends_though_it_hangs(tmp_path: Path) -> None:
    code = (
        "import asyncio\n"
        "from graphs import open_chatbot\n"
        "async def main():\n"
        "    async with open_chatbot() as bot:\n"
        "        print((await bot.ask('Hello')).text[:5], flush=True)\n"
        "asyncio.run(main())\n"
    )
    with langsmith("hang") as url, tracing(url):
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("CHATBOT_DATA_DIR", str(tmp_path))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", code),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        assert process.stdout is not None
        assert await process.stdout.readline()
        start = time.perf_counter()
        async with asyncio.timeout(60):
            await process.communicate()
    assert process.returncode == 0
    assert time.perf_counter() - start < CLOSE_SECONDS + 2 * READ_SECONDS + GENEROUS
