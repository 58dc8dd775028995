"""How much may be asked, by a clock that the tests set."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from serving.auth import NOBODY, Identity
from serving.http.quotas import InMemoryUserTurns, Quotas, TooManyError, UserLimits, UserTurns
from serving.http.shared_turns import SqliteUserTurns

ANN, BOB = Identity(user_id="ann"), Identity(user_id="bob")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


MakeTurns = Callable[[UserLimits], UserTurns]


@pytest.fixture(params=["one process", "several workers"])
async def make_turns(
    request: pytest.FixtureRequest, clock: Clock, tmp_path: Path
) -> AsyncIterator[MakeTurns]:
    shared: list[SqliteUserTurns] = []

    def make(limits: UserLimits) -> UserTurns:
        if request.param == "one process":
            return InMemoryUserTurns(limits, clock=clock)
        shared.append(SqliteUserTurns(tmp_path, limits, clock=clock))
        return shared[-1]

    yield make
    for turns in shared:
        await turns.close()


async def test_a_minute_slides(make_turns: MakeTurns, clock: Clock) -> None:
    turns = make_turns(UserLimits(per_minute=2, at_once=0))
    (await turns.begin("ann"))()
    clock.now += 30
    (await turns.begin("ann"))()
    with pytest.raises(TooManyError, match="2 questions a minute") as caught:
        await turns.begin("ann")
    assert caught.value.retry_after == pytest.approx(30)
    (await turns.begin("bob"))()
    clock.now += 30
    (await turns.begin("ann"))()
    with pytest.raises(TooManyError, match="2 questions a minute"):
        await turns.begin("ann")


async def test_answers_at_once_are_counted_until_they_end(
    make_turns: MakeTurns, clock: Clock
) -> None:
    turns = make_turns(UserLimits(per_minute=0, at_once=2))
    first, _ = await turns.begin("ann"), await turns.begin("ann")
    clock.now += 3600
    with pytest.raises(TooManyError, match="2 answers running"):
        await turns.begin("ann")
    await turns.begin("bob")
    first()
    await turns.begin("ann")
    with pytest.raises(TooManyError, match="2 answers running"):
        await turns.begin("ann")


async def test_without_limits_everything_is_admitted(make_turns: MakeTurns) -> None:
    turns = make_turns(UserLimits(per_minute=0, at_once=0))
    await asyncio.gather(*(turns.begin("ann") for _ in range(100)))


async def test_of_questions_at_the_same_time_no_more_are_admitted(
    make_turns: MakeTurns,
) -> None:
    turns = make_turns(UserLimits(per_minute=0, at_once=5))
    begun = await asyncio.gather(
        *(turns.begin("ann") for _ in range(50)), return_exceptions=True
    )
    assert sum(isinstance(each, TooManyError) for each in begun) == 45


async def test_streams_of_all_users_have_a_limit(clock: Clock) -> None:
    users = InMemoryUserTurns(UserLimits(per_minute=0, at_once=0), clock=clock)
    quotas = Quotas(users, open_streams=2)
    await quotas.admit(NOBODY)
    release = await quotas.admit(ANN)
    with pytest.raises(TooManyError, match="as many questions as it can"):
        await quotas.admit(BOB)
    release()
    await quotas.admit(BOB)


async def test_a_refused_user_takes_no_stream(clock: Clock) -> None:
    users = InMemoryUserTurns(UserLimits(per_minute=0, at_once=1), clock=clock)
    quotas = Quotas(users, open_streams=2)
    await quotas.admit(ANN)
    with pytest.raises(TooManyError, match="1 answers running"):
        await quotas.admit(ANN)
    await quotas.admit(BOB)


async def test_those_who_do_not_sign_in_are_not_counted_as_one_user(clock: Clock) -> None:
    users = InMemoryUserTurns(UserLimits(per_minute=1, at_once=1), clock=clock)
    quotas = Quotas(users, open_streams=9)
    await quotas.admit(NOBODY)
    await quotas.admit(NOBODY)


async def test_users_who_ask_nothing_are_forgotten(clock: Clock) -> None:
    turns = InMemoryUserTurns(UserLimits(per_minute=5, at_once=0), clock=clock)
    for number in range(10_000):
        (await turns.begin(f"u{number}"))()
    clock.now += 61
    await turns.begin("ann")
    assert len(turns._used) == 1  # noqa: SLF001 - memory is what this is about
