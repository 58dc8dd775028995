import asyncio
import time

import pytest

from chatbot.knowledge.ragflow.breaker import CircuitBreaker
from chatbot.knowledge.ragflow.errors import RagflowError, unreachable
from tests.stopwatch import Stopwatch

ERROR = unreachable("connection refused")


class Probe:
    """Counts how often the service is looked at; `answers` says whether it is back."""

    def __init__(self, *, answers: bool = False, seconds: float = 0) -> None:
        self.answers = answers
        self.seconds = seconds
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1
        await asyncio.sleep(self.seconds)
        if not self.answers:
            raise ERROR


async def test_calls_pass_while_they_succeed() -> None:
    probe = Probe()
    breaker = CircuitBreaker(probe)
    for _ in range(3):
        await breaker.admit()
        breaker.succeeded()
    assert probe.count == 0


async def test_a_failed_call_is_followed_by_a_probe_and_by_no_other_for_a_while() -> None:
    probe = Probe()
    breaker = CircuitBreaker(probe)
    breaker.failed(ERROR)
    for _ in range(10):
        with pytest.raises(RagflowError, match="connection refused") as caught:
            await breaker.admit()
    assert probe.count == 1
    assert caught.value.retry_after == 1


async def test_a_service_that_answers_the_probe_is_used_again_at_once() -> None:
    probe = Probe(answers=True)
    breaker = CircuitBreaker(probe)
    breaker.failed(ERROR)
    await breaker.admit()
    assert not breaker.is_open


async def test_all_who_come_at_once_share_a_probe() -> None:
    probe = Probe(answers=True, seconds=0.02)
    breaker = CircuitBreaker(probe)
    breaker.failed(ERROR)
    await asyncio.gather(*(breaker.admit() for _ in range(50)))
    assert probe.count == 1


async def test_a_probe_without_an_answer_is_not_waited_for() -> None:
    probe = Probe(seconds=60)
    breaker = CircuitBreaker(probe, patience=0.05)
    breaker.failed(ERROR)
    started, waited = time.monotonic(), []
    for _ in range(3):
        stopwatch = Stopwatch()
        with pytest.raises(RagflowError):
            await breaker.admit()
        waited.append(stopwatch.seconds())
    assert time.monotonic() - started > 0.03  # the first waits for a moment
    assert waited[0] < 0.2
    assert max(waited[1:]) < 0.03
    await breaker.close()
    assert len(asyncio.all_tasks()) == 1


async def test_calls_that_fail_although_the_probe_succeeds_are_refused_for_a_while() -> None:
    probe = Probe(answers=True)
    breaker = CircuitBreaker(probe)
    breaker.failed(ERROR)
    await breaker.admit()
    breaker.failed(ERROR)
    with pytest.raises(RagflowError):
        await breaker.admit()
    assert probe.count == 1


async def test_an_answer_that_was_under_way_closes_the_circuit() -> None:
    breaker = CircuitBreaker(Probe())
    breaker.failed(ERROR)
    breaker.succeeded()
    await breaker.admit()
