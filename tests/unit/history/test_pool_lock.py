import asyncio

import pytest
from pymongo.lock import Condition, Lock, _async_cond_wait

from chatbot.history.connection import open_client


@pytest.mark.parametrize("free", [True, False], ids=["is free again", "is held"])
async def test_a_wait_that_is_cancelled_when_its_time_is_over_leaves_the_lock(
    *, free: bool
) -> None:
    async with open_client("mongodb://127.0.0.1:9"):
        lock = Lock()
        condition = Condition(lock)

        async def wait_for_a_connection() -> None:
            async with condition:
                await _async_cond_wait(condition, 0.05)

        waiting = asyncio.create_task(wait_for_a_connection())
        await asyncio.sleep(0)  # it waits
        await lock.acquire()
        await asyncio.sleep(0.1)  # its time is over while another one has the lock
        waiting.cancel()
        if free:
            lock.release()
        await asyncio.sleep(0.01)
        assert lock.locked() != free
        if not free:
            assert not waiting.done()
            lock.release()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not lock.locked()
