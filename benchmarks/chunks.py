"""What a chunk of a model's answer costs, and whether many streams slow each other.

    python -m benchmarks.chunks [part of a client's name ...]

A server in a process of its own sends answers token by token: each is written and drained by
itself, so that it is one read of the client, and counted as such. Costs are the CPU time of
this process alone, and the difference between a long answer and a short one, so what a turn
costs once is not in them. All clients take turns in every round, and the quietest round counts.
"Bursts" are tokens that come together: what is saved there comes on top. 200 streams at once
are of 50 tokens a second each. The ratios count, absolute figures belong to the machine.
"""

import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack

from benchmarks.clients import CLIENTS, Stream
from benchmarks.model_server import Pace, served

SHORT, LONG = 20, 420
SINGLE, BURST = 0.002, 8
ROUNDS = 7
STREAMS = 200
CROWD = Pace(tokens=100, gap=0.02)
REFERENCE = "ChatOpenAI.astream"
TARGET = 150 / 385  # of the reference: the two as once measured on one machine


async def consume(stream: Stream, pace: Pace) -> tuple[int, float]:
    """Return how many pieces came, and the CPU time of this process in microseconds."""
    started = time.process_time()
    pieces = 0
    async for _ in stream(str(pace)):
        pieces += 1
    return pieces, (time.process_time() - started) * 1e6


async def costs(
    streams: Mapping[str, Stream], gap: float, burst: int
) -> dict[str, tuple[float, int]]:
    """Return for each client the cost of a token, and the pieces of a long answer."""
    times = {name: ([float("inf")], [float("inf")]) for name in streams}
    pieces = dict.fromkeys(streams, 0)
    for stream in streams.values():
        await consume(stream, Pace(tokens=LONG, gap=gap, burst=burst))
    for _ in range(ROUNDS):
        for name, stream in streams.items():
            _, short = await consume(stream, Pace(tokens=SHORT, gap=gap, burst=burst))
            count, long = await consume(stream, Pace(tokens=LONG, gap=gap, burst=burst))
            times[name][0].append(short)
            times[name][1].append(long)
            pieces[name] = max(pieces[name], count)
    return {
        name: ((min(long) - min(short)) / (LONG - SHORT), pieces[name])
        for name, (short, long) in times.items()
    }


async def crowd(stream: Stream, streams: int) -> list[float]:
    """Return how long each of so many answers at once flowed, in milliseconds, sorted.

    From its first piece to its last: what comes before the first is no matter of streams.
    """

    async def one() -> float:
        started = 0.0
        async for _ in stream(str(CROWD)):
            started = started or time.perf_counter()
        return (time.perf_counter() - started) * 1000

    return sorted(await asyncio.gather(*(one() for _ in range(streams))))


async def measure(url: str, wanted: list[str]) -> None:
    """Print a table for single tokens, one for bursts, and one for the crowd."""
    async with AsyncExitStack() as stack:
        streams = {
            name: await stack.enter_async_context(opened(url))
            for name, opened in CLIENTS.items()
            if not wanted or any(part in name for part in wanted)
        }
        single = await costs(streams, SINGLE, 1)
        reference = single[REFERENCE][0] if REFERENCE in single else float("nan")
        _print(f"{LONG} tokens, one a read", "pieces", "µs a token", "of ChatOpenAI")
        for name, (cost, pieces) in single.items():
            _print(name, str(pieces), f"{cost:.0f}", f"{cost / reference:.2f}")
        _print("target: from the socket to our event", "", "150", f"{TARGET:.2f}")
        together = await costs(streams, SINGLE * BURST, BURST)
        _print(f"\n{LONG} tokens, {BURST} a burst", "pieces", "µs a token", "saved")
        for name, (cost, pieces) in together.items():
            saved = 1 - cost / single[name][0]
            _print(name, str(pieces), f"{cost:.0f}", f"{saved:.0%}")
        _print("\nms for 100 tokens at 50 a second", "alone", f"{STREAMS} at once", "slowest")
        for name, stream in streams.items():
            await crowd(stream, 1)
            alone = (await crowd(stream, 1))[0]
            try:
                crowded = await crowd(stream, STREAMS)
            except Exception as error:  # noqa: BLE001 - some clients do not bear it: the others go on
                _print(name, f"{alone:.0f}", type(error).__name__, "failed")
                continue
            median = crowded[len(crowded) // 2]
            _print(name, f"{alone:.0f}", f"{median:.0f}", f"{crowded[-1]:.0f}")


def _print(*cells: str) -> None:
    first, *others = cells
    width = 38 + first.count("\n")
    sys.stdout.write(f"{first:{width}}{''.join(f'{cell:>16}' for cell in others)}\n")
    sys.stdout.flush()


def main() -> None:
    """Start the server and print the tables."""
    with served() as url:
        asyncio.run(measure(f"{url}/v1", sys.argv[1:]))


if __name__ == "__main__":
    main()
