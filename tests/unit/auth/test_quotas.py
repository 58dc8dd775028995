"""How much may be asked, by a clock that the tests set."""

import pytest

from serving.auth import NOBODY, Identity
from serving.http.quotas import Quotas, TooManyError

ANN, BOB = Identity(user_id="ann"), Identity(user_id="bob")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_minute_slides() -> None:
    clock = Clock()
    quotas = Quotas(per_minute=2, at_once=0, open_streams=9, clock=clock)
    quotas.admit(ANN)()
    clock.now += 30
    quotas.admit(ANN)()
    with pytest.raises(TooManyError, match="2 questions a minute") as caught:
        quotas.admit(ANN)
    assert caught.value.retry_after == pytest.approx(30)
    quotas.admit(BOB)()
    clock.now += 30
    quotas.admit(ANN)()


def test_answers_at_once_are_counted_until_they_end() -> None:
    quotas = Quotas(per_minute=0, at_once=2, open_streams=9)
    first, _ = quotas.admit(ANN), quotas.admit(ANN)
    with pytest.raises(TooManyError, match="2 answers running"):
        quotas.admit(ANN)
    quotas.admit(BOB)
    first()
    quotas.admit(ANN)


def test_streams_of_all_users_have_a_limit() -> None:
    quotas = Quotas(per_minute=0, at_once=0, open_streams=2)
    quotas.admit(NOBODY)
    release = quotas.admit(ANN)
    with pytest.raises(TooManyError, match="as many questions as it can"):
        quotas.admit(BOB)
    release()
    quotas.admit(BOB)


def test_those_who_do_not_sign_in_are_not_counted_as_one_user() -> None:
    quotas = Quotas(per_minute=1, at_once=1, open_streams=9)
    quotas.admit(NOBODY)
    quotas.admit(NOBODY)


def test_users_who_ask_nothing_are_forgotten() -> None:
    clock = Clock()
    quotas = Quotas(per_minute=5, at_once=0, open_streams=50_000, clock=clock)
    for number in range(10_000):
        quotas.admit(Identity(user_id=f"u{number}"))()
    clock.now += 61
    quotas.admit(ANN)
    assert len(quotas._used) == 1  # noqa: SLF001 - memory is what this is about
