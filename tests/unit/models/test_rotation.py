"""Turns, rests and probes, on a clock of the test's own."""

from collections import Counter

import pytest

from chatbot.errors import ModelError, ModelFailure
from chatbot.models.rotation import Rotation


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def failure(kind: ModelFailure, retry_after: float | None = None) -> ModelError:
    return ModelError(kind, "failed", retry_after=retry_after)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def wait(rotation: Rotation, index: int = 0) -> tuple[float, ModelFailure | None]:
    return rotation.waits({index}).get(index, (0, None))


def answer(rotation: Rotation, allowed: set[int]) -> int | None:
    if (index := rotation.choose(allowed)) is not None:
        rotation.succeeded(index)
    return index


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        pytest.param((1, 1, 1), {0: 30, 1: 30, 2: 30}, id="equal"),
        pytest.param((4, 1, 1), {0: 60, 1: 15, 2: 15}, id="one heavier"),
    ],
)
def test_turns_follow_the_weights(
    weights: tuple[int, ...], expected: dict[int, int], clock: Clock
) -> None:
    rotation = Rotation([(str(i), weight) for i, weight in enumerate(weights)], clock=clock)
    taken = [answer(rotation, {0, 1, 2}) for _ in range(90)]
    assert Counter(taken) == expected
    assert len(set(taken[:6])) == 3  # mixed, not one after the other


def test_only_allowed_endpoints_are_chosen(clock: Clock) -> None:
    rotation = Rotation([("a", 9), ("b", 1)], clock=clock)
    assert {answer(rotation, {1}) for _ in range(5)} == {1}
    assert rotation.choose(set()) is None


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        pytest.param(failure("rate_limit"), 60, id="rate limit"),
        pytest.param(failure("rate_limit", 5), 5, id="rate limit with time"),
        pytest.param(failure("rate_limit", 0), 1, id="rate limit without any time"),
        pytest.param(failure("rate_limit", 9999), 600, id="rate limit with too much time"),
        pytest.param(failure("auth"), 10, id="auth"),
        pytest.param(failure("connection"), 10, id="connection"),
        pytest.param(failure("timeout"), 10, id="timeout"),
        pytest.param(failure("server"), 10, id="server"),
        pytest.param(failure("server", 30), 30, id="server with time"),
        pytest.param(failure("server", 0), 1, id="server without any time"),
        pytest.param(failure("protocol"), 10, id="protocol"),
        pytest.param(failure("interrupted"), 10, id="cut stream"),
        pytest.param(failure("bad_request"), 0, id="bad request"),
        pytest.param(failure("context_too_long"), 0, id="too long"),
        pytest.param(failure("content_filter"), 0, id="filtered"),
        pytest.param(failure("unsupported"), 0, id="unsupported"),
    ],
)
def test_a_failure_rests_its_endpoint(error: ModelError, seconds: float, clock: Clock) -> None:
    rotation = Rotation([("a", 9), ("b", 1)], clock=clock)
    rotation.choose({0})
    rotation.failed(0, error)
    assert rotation.states()[0].seconds == seconds
    if seconds:
        clock.now += seconds - 0.1
        assert {answer(rotation, {0, 1}) for _ in range(5)} == {1}
        assert rotation.states()[0].state == "cooling"
        clock.now += 0.1
        assert rotation.states()[0].state == "probing"
    assert rotation.choose({0, 1}) == 0


@pytest.mark.parametrize(
    ("error", "begun", "seconds"),
    [
        pytest.param(failure("rate_limit"), True, 60, id="rate limit"),
        pytest.param(failure("auth"), True, 10, id="auth"),
        pytest.param(failure("connection"), False, 10, id="no connection"),
        pytest.param(failure("timeout"), False, 10, id="silence"),
        pytest.param(failure("server", 30), False, 30, id="server with time"),
        pytest.param(failure("server"), False, 0, id="server"),
        pytest.param(failure("protocol"), False, 0, id="protocol"),
        pytest.param(failure("interrupted"), False, 0, id="cut before the answer"),
        pytest.param(failure("interrupted"), True, 0, id="cut answer"),
        pytest.param(failure("connection"), True, 0, id="connection lost in the answer"),
        pytest.param(failure("timeout"), True, 0, id="answer that stalled"),
    ],
)
def test_the_only_endpoint_does_not_rest_for_what_may_be_one_requests_fault(
    error: ModelError, begun: bool, seconds: float, clock: Clock
) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    rotation.choose({0})
    rotation.failed(0, error, begun=begun)
    assert wait(rotation) == (seconds, error.kind)
    [state] = rotation.states()
    assert (state.state, state.seconds) == ("cooling" if seconds else "ready", seconds)
    assert state.error == error.kind
    chosen = [rotation.choose({0}) for _ in range(2)]
    assert chosen == ([None, None] if seconds else [0, 0])


def test_where_all_are_in_doubt_the_one_that_failed_longest_ago_is_asked(clock: Clock) -> None:
    rotation = Rotation([("a", 1), ("b", 1), ("c", 1)], clock=clock)
    rotation.failed(2, failure("rate_limit"))
    for index in (1, 0):
        rotation.failed(index, failure("interrupted"), begun=True)
        clock.now += 1
    assert rotation.choose({0, 1, 2}) == 1
    assert rotation.choose({0, 2}) == 0
    assert rotation.choose({2}) is None


@pytest.mark.parametrize("is_first", [True, False])
def test_a_doubt_does_not_end_a_rest_that_is_certain(is_first: bool, clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    certain, doubt = failure("rate_limit", 5), failure("server")
    for error in (certain, doubt) if is_first else (doubt, certain):
        rotation.failed(0, error)
    assert wait(rotation) == (5, "rate_limit")
    assert rotation.choose({0}) is None
    clock.now += 5
    rotation.failed(0, doubt)
    assert wait(rotation) == (0, "server")


def test_one_call_alone_tries_an_endpoint_after_its_rest(clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    rotation.choose({0})
    rotation.failed(0, failure("timeout"))
    clock.now += 10
    assert rotation.choose({0}) == 0
    assert rotation.choose({0}) is None
    assert wait(rotation) == (1, "timeout")
    rotation.succeeded(0)
    assert [rotation.choose({0}) for _ in range(2)] == [0, 0]
    assert rotation.states()[0].error is None


def test_a_probe_that_was_abandoned_leaves_the_endpoint_to_the_next(clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    rotation.choose({0})
    rotation.failed(0, failure("timeout"))
    clock.now += 10
    rotation.choose({0})
    rotation.abandoned(0)
    assert rotation.choose({0}) == 0


def test_a_failed_probe_rests_the_endpoint_as_the_first_failure_did(clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    for _ in range(4):
        assert rotation.choose({0}) == 0
        rotation.failed(0, failure("timeout"))
        assert wait(rotation) == (10, "timeout")
        clock.now += 10


def test_a_short_rest_does_not_end_a_longer_one(clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    for error in (failure("rate_limit"), failure("connection")):
        rotation.failed(0, error)
        assert wait(rotation) == (60, "rate_limit")


def test_an_answer_to_an_earlier_call_does_not_end_a_rest(clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    rotation.choose({0})
    rotation.choose({0})
    rotation.failed(0, failure("rate_limit", 30))
    rotation.succeeded(0)
    assert rotation.choose({0}) is None


def test_a_refused_request_shows_that_the_endpoint_works(clock: Clock) -> None:
    rotation = Rotation([("a", 1)], clock=clock)
    rotation.choose({0})
    rotation.failed(0, failure("server"))
    clock.now += 10
    rotation.choose({0})
    rotation.failed(0, failure("bad_request"))
    assert rotation.states()[0].state == "ready"
