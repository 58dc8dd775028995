import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import pytest

from chatbot.domain import Session
from chatbot.errors import DeadlineError, TakenOverError
from graphs.turn import LiveTurn


def turn(seconds: float = 60) -> LiveTurn:
    def ignore(event: Mapping[str, Any]) -> None: ...

    deadline = asyncio.get_running_loop().time() + seconds
    session = Session(session_id="s")
    return LiveTurn(session=session, turn_id="t", question="q", emit=ignore, deadline=deadline)


def endless() -> Awaitable[None]:
    return asyncio.sleep(60)


async def test_a_step_ends_at_the_deadline() -> None:
    with pytest.raises(DeadlineError):
        await turn(0.01).before_deadline(endless())


async def test_a_running_step_is_broken_off() -> None:
    live = turn()
    step = asyncio.create_task(live.before_deadline(endless()))
    await asyncio.sleep(0)
    live.break_off(TakenOverError())
    live.break_off(DeadlineError("only the first reason counts"))
    with pytest.raises(TakenOverError):
        await step


async def test_between_two_steps_the_next_one_is_broken_off() -> None:
    live = turn()
    assert await live.before_deadline(asyncio.sleep(0, "done")) == "done"
    live.break_off(TakenOverError())
    with pytest.raises(TakenOverError):
        await live.before_deadline(endless())


async def test_a_whole_answer_is_not_broken_off() -> None:
    live = turn()
    live.finished = True
    live.break_off(TakenOverError())
    assert await live.before_deadline(asyncio.sleep(0.01, "saved")) == "saved"


async def test_a_step_that_times_out_by_itself_keeps_its_error() -> None:
    async def step() -> None:
        message = "its own"
        raise TimeoutError(message)

    with pytest.raises(TimeoutError, match="its own"):
        await turn().before_deadline(step())
