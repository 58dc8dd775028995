"""Runs an asynchronous stream for a caller without an event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")


def iterate(start: Callable[[], AsyncIterator[Item]]) -> Iterator[Item]:
    """Yield the items of a stream that runs in an event loop and a thread of its own.

    Works inside a running event loop as well, which it blocks.
    """
    items: SimpleQueue[tuple[Item | None, BaseException | None, bool]] = SimpleQueue()
    stopped: list[bool] = []

    async def run() -> None:
        async for item in start():
            if stopped:
                return
            items.put((item, None, False))

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            items.put((None, error, True))
        else:
            items.put((None, None, True))

    thread = Thread(target=work, name="model-stream", daemon=True)
    thread.start()
    try:
        while True:
            item, error, ended = items.get()
            if error is not None:
                raise error
            if ended:
                return
            yield item  # type: ignore[misc]  # an item, where neither error nor end
    finally:
        stopped.append(True)
