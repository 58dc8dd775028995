"""Time limits, and connections that are kept, left and lost."""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from chatbot.models.time_limits import TimeLimits
from tests.integration.models.streams import PATIENT, ask, opened, until, watch
from tests.servers.model import (
    ModelServer,
    Script,
    answer,
    call,
    delta,
    frames,
    hang,
    heartbeats,
    refuse,
    slow_head,
)
from tests.stopwatch import Stopwatch

FIRST = {"first_token": 0.3}


@pytest.mark.parametrize(
    ("script", "limit", "words"),
    [
        pytest.param(hang(), FIRST, "begin to answer within 0.3", id="silence"),
        pytest.param(heartbeats(), FIRST, "begin to answer within 0.3", id="heartbeats"),
        pytest.param(slow_head(), FIRST, "begin to answer within 0.3", id="slow headers"),
        pytest.param(
            answer("a b c", ending="stall", finish=None),
            {"between_tokens": 0.3},
            "0.3 seconds while",
            id="stall",
        ),
        pytest.param(
            answer("x " * 200, delay=0.02),
            {"total": 0.6},
            "finish within 0.6",
            id="slow but steady",
        ),
    ],
)
async def test_the_time_limits_hold(
    script: Script, limit: Mapping[str, float], words: str
) -> None:
    stopwatch = Stopwatch()
    seen = await ask(script, limits=replace(PATIENT, **limit))
    assert stopwatch.seconds() < 1
    assert seen.kind == "timeout"
    assert words in str(seen.error)


async def test_a_whole_completion_has_the_time_of_the_whole_call() -> None:
    limits = TimeLimits(first_token=0.1, between_tokens=0.1, total=30)
    seen = await ask(answer("one two", wait=0.3), can_stream=False, limits=limits)
    assert seen.answer == "one two"


async def test_a_slow_consumer_is_not_held_against_the_model() -> None:
    limits = replace(PATIENT, between_tokens=0.5)
    with ModelServer([answer("one two three")]) as server:
        async with opened(server.base_url, limits=limits) as model:
            pieces = []
            async for chunk in model.astream("Count."):
                pieces.append(chunk.content)
                if len(pieces) == 2:
                    await asyncio.sleep(0.6)
    assert "".join(map(str, pieces)) == "one two three"


@pytest.mark.parametrize("ending", ["reset", "stall"])
async def test_what_goes_wrong_after_the_end_is_no_failure(ending: Any) -> None:
    seen = await ask(answer("Paris.", usage=None, ending=ending))
    assert (seen.answer, seen.finish, seen.error) == ("Paris.", "stop", None)


async def test_a_reason_of_the_end_with_every_piece_does_not_end_the_answer() -> None:
    sent = [delta("x", finish="stop") for _ in range(8)]
    seen = await ask(frames(sent, delay=0.2, ending="stall"), limits=PATIENT)
    assert (seen.answer, seen.finish, seen.error) == ("x" * 8, "stop", None)


async def test_the_remaining_time_is_told_in_round_numbers() -> None:
    limits = replace(PATIENT, total=0.29999)
    assert "within 0.3 seconds" in str((await ask(hang(), limits=limits)).error)


async def test_an_address_where_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with opened(f"http://127.0.0.1:{unused.getsockname()[1]}/v1") as model:
            seen = await watch(model.astream("Where is Paris?"))
    assert seen.kind == "connection"


async def test_leaving_a_stream_closes_the_request_at_once() -> None:
    with ModelServer([answer("x " * 1000, delay=0.01)]) as server:
        async with opened(server.base_url) as model:

            async def read() -> None:
                async for _ in model.astream("Go on."):
                    started.set()

            started = asyncio.Event()
            reading = asyncio.create_task(read())
            await started.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await until(lambda: server.abandoned == 1)


async def test_a_model_that_is_closed_ends_its_streams_with_an_error() -> None:
    with ModelServer([answer("x " * 1000, delay=0.01)]) as server:
        async with opened(server.base_url) as model:
            stream = model.astream("Go on.")
            await anext(stream)
            await model.aclose()
            seen = await watch(stream)
    assert seen.kind == "interrupted"


async def test_a_kept_connection_that_the_server_closed_is_no_failure() -> None:
    with ModelServer([answer("one")]) as server:
        async with opened(server.base_url) as model:
            first = await watch(model.astream("Count."))
            server.pause()
            server.resume()
            second = await watch(model.astream("Count."))
    assert (first.answer, second.answer, second.error) == ("one", "one", None)


async def test_a_connection_serves_again() -> None:
    with ModelServer(
        [answer("one"), call("general_chat"), refuse(429), answer("two")]
    ) as server:
        async with opened(server.base_url) as model:
            for _ in range(4):
                await watch(model.astream("Count."))
        assert server.connections == 1
