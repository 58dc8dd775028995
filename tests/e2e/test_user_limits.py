"""What a user may ask of `chatbot serve --workers 2`: as much as of one process."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from tests.servers.chatbot import ChatbotServer, chatbot_server
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call

pytestmark = pytest.mark.timeout(300)

SECRET = "a secret that is long enough for HS256"
WORKERS = 2
PER_MINUTE = 10
AT_ONCE = 4
ENDLESS = "Tell me everything."


def think(request: ChatRequest) -> Script:
    if request.tools:
        return call("general_chat")
    if request.question == ENDLESS:
        return answer([f"word{number} " for number in range(10_000)], delay=0.1)
    return answer("You are welcome.")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatbotServer]:
    folder = tmp_path_factory.mktemp("limits")
    with ModelServer(think) as model:
        settings = {
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": model.base_url,
            "LLM_MODEL": "scripted",
            "JWT_SECRET": SECRET,
            "OPERATORS": "operator",
            "TURNS_PER_MINUTE": str(PER_MINUTE),
            "TURNS_AT_ONCE": str(AT_ONCE),
            "LOG_LEVEL": "WARNING",
        }
        command = ("serve", "--workers", str(WORKERS))
        with chatbot_server(folder, *command, settings=settings) as running:
            yield running


def client(server: ChatbotServer, user: str) -> httpx.AsyncClient:
    """Return one whose every request reaches whichever worker takes it."""
    claims = {"sub": user, "exp": time.time() + 600}
    return httpx.AsyncClient(
        base_url=server.url,
        timeout=60,
        limits=httpx.Limits(max_keepalive_connections=0),
        headers={"Authorization": f"Bearer {jwt.encode(claims, SECRET, algorithm='HS256')}"},
    )


async def error_of(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 429
    await response.aread()
    error: dict[str, Any] = response.json()["error"]
    assert error["code"] == "too_many_requests"
    assert float(response.headers["Retry-After"]) > 0
    return error


class Answers:
    """Endless answers to one user, each read in a task that ends when its worker dies."""

    def __init__(self, http: httpx.AsyncClient, stack: AsyncExitStack) -> None:
        self._http = http
        self._stack = stack
        self._asked = 0
        self.reading: set[asyncio.Task[None]] = set()

    async def begin(self) -> httpx.Response:
        self._asked += 1
        body = {"question": ENDLESS, "session_id": f"s{self._asked}"}
        response = await self._stack.enter_async_context(
            self._http.stream("POST", "/api/chat", json=body)
        )
        if response.status_code == httpx.codes.OK:
            self.reading.add(asyncio.create_task(self._read(response)))
        return response

    async def broken(self) -> int:
        """Return how many answers have broken off, when it is one at least."""
        await asyncio.wait(self.reading, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.5)  # all of a worker do at once
        ended = {task for task in self.reading if task.done()}
        self.reading -= ended
        return len(ended)

    async def leave(self) -> None:
        for task in self.reading:
            task.cancel()
        await asyncio.gather(*self.reading, return_exceptions=True)

    @staticmethod
    async def _read(response: httpx.Response) -> None:
        with pytest.raises(httpx.TransportError):
            async for _ in response.aiter_bytes():
                pass


def kill(pid: int) -> None:
    """Kill a process and return when it is dead, whoever has to hear of it."""
    os.kill(pid, signal.SIGKILL)
    while (stat := Path(f"/proc/{pid}/stat")).exists():
        if stat.read_text(encoding="ascii", errors="replace").rpartition(") ")[2][0] == "Z":
            return
        time.sleep(0.01)


async def test_a_minute_goes_over_all_workers(server: ChatbotServer) -> None:
    refused: list[dict[str, Any]] = []
    async with client(server, "hasty") as http:

        async def ask(session_id: str) -> None:
            for _ in range(2 * PER_MINUTE):
                body = {"question": "Thanks!", "session_id": session_id}
                response = await http.post("/api/chat", json=body)
                if response.status_code != httpx.codes.OK:
                    refused.append(await error_of(response))

        await asyncio.gather(ask("one"), ask("other"))
    assert len(refused) == 3 * PER_MINUTE
    messages = {error["message"].partition(":")[0] for error in refused}
    assert messages == {f"You may ask {PER_MINUTE} questions a minute"}


async def test_answers_at_once_go_over_all_workers_and_a_killed_one_gives_its_own_back(
    server: ChatbotServer,
) -> None:
    async with client(server, "curious") as http, AsyncExitStack() as stack:
        answers = Answers(http, stack)
        stack.push_async_callback(answers.leave)
        for _ in range(AT_ONCE):
            assert (await answers.begin()).status_code == httpx.codes.OK
        assert "4 answers running" in (await error_of(await answers.begin()))["message"]

        kill(max(workers(server), key=lambda worker: connections(server, worker)))
        broken = await answers.broken()
        for _ in range(broken):
            assert (await answers.begin()).status_code == httpx.codes.OK
        assert "4 answers running" in (await error_of(await answers.begin()))["message"]


def workers(server: ChatbotServer) -> list[int]:
    """Return the processes that serve; beside them is the one that multiprocessing has."""
    commands = {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in server.children()
    }
    return [pid for pid, command in commands.items() if "spawn_main" in command]


def connections(server: ChatbotServer, worker: int) -> int:
    """Return how many connections the worker has from clients."""
    port = f"{int(server.url.rpartition(':')[2]):04X}"
    rows = map(str.split, Path("/proc/net/tcp").read_text("ascii").splitlines()[1:])
    # of a row: the local address with the port, the state, and, as the tenth, the inode
    open_ones = {
        f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port}") and row[3] == "01"
    }
    held = 0
    for file in Path(f"/proc/{worker}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            held += str(file.readlink()) in open_ones
    return held


async def completed(http: httpx.AsyncClient) -> float:
    text = (await http.get("/api/metrics")).text
    lines = [line.rsplit(" ", 1) for line in text.splitlines()]
    return sum(
        float(value)
        for name, value in lines
        if name.startswith("chatbot_turns_total") and 'status="complete"' in name
    )


async def test_metrics_lose_and_double_nothing_when_workers_are_killed(
    server: ChatbotServer,
) -> None:
    async with client(server, "operator") as operator, client(server, "counted") as http:
        before = await completed(operator)
        body = {"question": "Thanks!"}
        asking = [
            http.post("/api/chat", json=body | {"session_id": f"s{number}"})
            for number in range(AT_ONCE)
        ]
        await asyncio.gather(*asking)
        assert await completed(operator) == before + AT_ONCE
        for worker in workers(server):
            kill(worker)
        server.wait_until_ready()
        assert {await completed(operator) for _ in range(12)} == {before + AT_ONCE}
        assert (await http.post("/api/chat", json=body)).status_code == httpx.codes.OK
        assert await completed(operator) == before + AT_ONCE + 1
