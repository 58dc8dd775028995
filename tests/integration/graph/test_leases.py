import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from chatbot.domain import Session, Turn
from chatbot.errors import BusyError, HistoryError
from chatbot.leases.local import LocalLeases
from chatbot.leases.queues import SessionQueues
from chatbot.leases.records import LEASE_SECONDS
from chatbot.limits import Limits
from chatbot.ports import Ports
from chatbot.statistics import Statistics
from graphs import Chatbot
from graphs.keeping import keep
from graphs.leasing import Lease
from graphs.turn import LiveTurn
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))


@pytest.fixture
async def leases() -> AsyncIterator[LocalLeases]:
    opened = LocalLeases(":memory:")
    yield opened
    await opened.close()


# How long a question may wait for its session where nobody has it: a lease that nobody gives
# back is there for longer.
FREE_AT_ONCE = LEASE_SECONDS / 2


def bot_with(bench: Bench, leases: LocalLeases, *, wait_seconds: float = 30) -> Chatbot:
    limits = Limits(turn_seconds=60, wait_seconds=wait_seconds)
    return bench.bot_with(leases=leases, limits=limits)


async def answering(bench: Bench, prompts: int) -> None:
    async with asyncio.timeout(30):
        while len(bench.model.prompts) < prompts:  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.01)


async def test_two_questions_at_once_are_answered_in_order(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on), CHAT, Said(["second"]))
    first = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, 2)
    second = asyncio.create_task(bot.ask("two", session_id="s"))
    await asyncio.sleep(0.2)
    assert len(bench.model.prompts) == 2
    go_on.set()
    assert [(await first).text, (await second).text] == ["first", "second"]
    assert [t.question for t in await bot.turns("s")] == ["one", "two"]
    assert [m.content for m in bench.model.prompts[-1][1:3]] == ["one", "first"]


async def test_the_second_is_told_that_the_session_is_busy(
    bench: Bench, leases: LocalLeases
) -> None:
    bot, patient = bot_with(bench, leases, wait_seconds=0.2), bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on))
    first = asyncio.create_task(patient.ask("one", session_id="s"))
    await answering(bench, 2)
    events = [event async for event in bot.stream("two", session_id="s")]
    assert [event["type"] for event in events] == ["stage", "metadata", "error"]
    assert events[-1]["data"]["code"] == "busy"
    assert events[-1]["data"]["retryable"]
    with pytest.raises(BusyError):
        await bot.ask("two", session_id="s")
    bench.script(CHAT, Said(["elsewhere"]))
    assert (await patient.ask("three", session_id="other")).text == "elsewhere"
    go_on.set()
    await first
    assert [t.question for t in await bot.turns("s")] == ["one"]


async def test_those_that_wait_come_in_order(bench: Bench, leases: LocalLeases) -> None:
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on))
    bench.script(*[said for _ in range(4) for said in (CHAT, Said(["next"]))])
    asked = [asyncio.create_task(bot.ask("0", session_id="s"))]
    await answering(bench, 2)
    for number in range(1, 5):
        asked.append(asyncio.create_task(bot.ask(str(number), session_id="s")))
        await asyncio.sleep(0.1)
    go_on.set()
    await asyncio.gather(*asked)
    assert [t.question for t in await bot.turns("s")] == ["0", "1", "2", "3", "4"]


async def test_of_one_that_is_stopped_while_it_waits_nothing_is_kept(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on))
    first = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, 2)
    waiting = [asyncio.create_task(bot.ask("two", session_id="s")) for _ in range(2)]
    await asyncio.sleep(0.1)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    running = await bot.running("s")
    assert running is not None
    assert running.question == "one"
    go_on.set()
    await first
    assert [t.question for t in await bot.turns("s")] == ["one"]
    bench.script(CHAT, Said(["third"]))
    assert (await bot.ask("three", session_id="s")).text == "third"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        pytest.param([Said(pause=asyncio.Event())], "stopped", id="stopped while routing"),
        pytest.param([CHAT, Said(["a"], pause=asyncio.Event())], "stopped", id="stopped"),
        pytest.param([CHAT, Said(error=ZeroDivisionError("x"))], "failed", id="failed"),
        pytest.param([CHAT, Said(["a"])], "complete", id="answered"),
    ],
)
async def test_however_a_turn_ends_the_session_is_free_at_once(
    bench: Bench, leases: LocalLeases, said: list[Said], status: str
) -> None:
    bot = bot_with(bench, leases, wait_seconds=FREE_AT_ONCE)
    bench.script(*said)
    asked = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, len(said))
    if status == "stopped":
        asked.cancel()
    await asyncio.wait([asked])
    assert await bot.running("s") is None
    bench.script(CHAT, Said(["fine"]))
    assert (await bot.ask("two", session_id="s")).text == "fine"
    assert [t.status for t in await bot.turns("s")] == [status, "complete"]


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        pytest.param({}, "deadline", id="too slow"),
        pytest.param({"replaces": "no-such-turn"}, "invalid_input", id="refused"),
    ],
)
async def test_an_error_frees_the_session_at_once(
    bench: Bench, leases: LocalLeases, choices: dict[str, Any], code: str
) -> None:
    limits = Limits(turn_seconds=0.3 if code == "deadline" else 60, wait_seconds=30)
    bot = bench.bot_with(leases=leases, limits=limits)
    bench.script(CHAT, Said(["a"], pause=asyncio.Event()))
    events = [event async for event in bot.stream("one", session_id="s", **choices)]
    assert events[-1]["data"]["code"] == code
    assert await bot.running("s") is None


async def test_a_stream_that_is_left_frees_the_session_at_once(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases, wait_seconds=FREE_AT_ONCE)
    bench.script(CHAT, Said(["a", "b"], pause=asyncio.Event()))
    async with aclosing(bot.stream("one", session_id="s")) as events:
        async for event in events:
            if event["type"] == "content":
                break
    assert await bot.running("s") is None
    bench.model.script.clear()
    bench.script(CHAT, Said(["fine"]))
    assert (await bot.ask("two", session_id="s")).text == "fine"


async def test_the_running_answer_can_be_seen_from_elsewhere(
    bench: Bench, leases: LocalLeases
) -> None:
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    look_up = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
    bench.script(look_up, Said(["15 days [1] ", "and"], pause=go_on))
    events = []

    async def ask() -> None:
        events.extend([event async for event in bot.stream("benefits ?", session_id="s")])

    asked = asyncio.create_task(ask())
    async with asyncio.timeout(30):
        shown = None
        while not (shown and shown.answer):
            await asyncio.sleep(0.05)
            shown = await bot.running("s")
    assert (shown.question, shown.status) == ("benefits ?", "stopped")
    assert shown.answer.startswith("15 days [1]")
    record = shown.record
    assert (record["intent"], record["query"]) == ("knowledge_base", "benefits ?")
    assert (record["assistants"], len(record["passages"])) == (["handbook"], 1)
    assert await bot.running("s", user_id="somebody-else") is None
    go_on.set()
    await asked
    assert shown.id == events[-1]["data"]["metadata"]["turn_id"]
    assert await bot.running("s") is None
    assert await bench.bot.running("s") is None  # this one has no leases


async def test_a_turn_whose_session_another_one_took_is_broken_off(
    bench: Bench, tmp_path: Path
) -> None:
    file = tmp_path / "leases.sqlite3"
    # Renewed each second, the first expires as that of a process that stands still.
    late, leases = LocalLeases(file, seconds=0.3), LocalLeases(file)
    bench.script(CHAT, Said(["half of it"], pause=asyncio.Event()))
    bench.script(CHAT, Said(["the other"], pause=asyncio.Event()))
    events = []

    async def ask() -> None:
        stream = bot_with(bench, late).stream("one", session_id="s")
        events.extend([event async for event in stream])

    first = asyncio.create_task(ask())
    await answering(bench, 2)
    bot = bot_with(bench, leases)
    second = asyncio.create_task(bot.ask("two", session_id="s"))
    await first
    error = events[-1]["data"]
    assert (error["code"], error["partial_answer"]) == ("taken_over", "half of it")
    assert error["retryable"]
    running = await bot.running("s")
    assert running is not None
    assert running.question == "two"  # the first one freed only what was its own
    second.cancel()
    await asyncio.wait([second])
    turns = await bot.turns("s")
    assert [(t.question, t.status) for t in turns] == [("one", "stopped"), ("two", "stopped")]
    assert turns[0].answer == "half of it"
    await late.close()
    await leases.close()


class Unsteady(LocalLeases):
    """Leases whose store is away for a while."""

    away = True

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        if self.away:
            message = "The store is away."
            raise HistoryError(message)
        return await super().claim(session, turn)


async def test_a_session_is_held_as_soon_as_the_store_of_leases_is_back(bench: Bench) -> None:
    leases = Unsteady(":memory:")
    bot = bot_with(bench, leases)
    go_on = asyncio.Event()
    bench.script(CHAT, Said(["first"], pause=go_on))
    first = asyncio.create_task(bot.ask("one", session_id="s"))
    await answering(bench, 2)
    leases.away = False
    async with asyncio.timeout(30):
        while await bot.running("s") is None:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    go_on.set()
    degraded = (await first).metadata["degraded"]
    assert degraded == [{"part": "lease", "reason": "The store is away."}]
    assert await bot.running("s") is None
    await leases.close()


async def test_a_turn_whose_run_is_gone_is_kept_and_counted_once(
    bench: Bench, leases: LocalLeases
) -> None:
    session, statistics = Session(session_id="s"), Statistics()
    now = asyncio.get_running_loop().time()
    turn = LiveTurn(
        session=session, turn_id="1", question="?", emit=lambda _: None, deadline=now + 60
    )
    lease = Lease(turn, leases, bench.history, statistics, renew_seconds=0.01)
    turn.let_go = lease.end
    turn.begun = True
    await lease.take(SessionQueues(), 5)
    async with asyncio.timeout(30):
        while not turn.settled:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
    ports = Ports(
        history=bench.history,
        knowledge=bench.knowledge,
        model=bench.model,
        statistics=statistics,
    )
    await keep(ports, turn, "failed")  # where its run was only late
    assert await leases.running(session) is None
    [kept] = (await bench.history.load(session, limit=9)).turns
    assert (kept.id, kept.status) == ("1", "stopped")
    assert statistics.summary()["statuses"] == {"stopped": 1}
