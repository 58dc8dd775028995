import asyncio

import pytest

from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.ragflow.cache import Renewed


class Source:
    """Counts how often it was loaded and returns that; may fail, may take its time."""

    def __init__(self, *, seconds: float = 0) -> None:
        self.seconds = seconds
        self.count = 0
        self.fails = False

    async def __call__(self) -> int:
        self.count += 1
        count = self.count
        await asyncio.sleep(self.seconds)
        if self.fails:
            raise KnowledgeBaseError("unavailable", "down")
        return count


async def test_a_fresh_value_is_not_loaded_again() -> None:
    source = Source()
    renewed = Renewed(source, fresh_seconds=60)
    assert [await renewed.get() for _ in range(3)] == [1, 1, 1]


async def test_all_who_wait_share_one_load() -> None:
    source = Source(seconds=0.02)
    renewed = Renewed(source, fresh_seconds=60)
    assert await asyncio.gather(*(renewed.get() for _ in range(9))) == [1] * 9


async def test_an_older_value_is_given_at_once_and_renewed_behind() -> None:
    source = Source()
    renewed = Renewed(source, fresh_seconds=0, stale_seconds=60)
    assert await renewed.get() == 1
    source.seconds = 0.02
    assert await renewed.get() == 1
    await asyncio.sleep(0.05)
    assert await renewed.get() == 2
    await renewed.close()


async def test_a_much_older_value_is_waited_for_and_given_if_that_fails() -> None:
    source = Source()
    renewed = Renewed(source, fresh_seconds=0, stale_seconds=0)
    assert [await renewed.get(), await renewed.get()] == [1, 2]
    source.fails = True
    assert await renewed.get() == 2


async def test_without_any_value_the_failure_is_told() -> None:
    source = Source()
    source.fails = True
    renewed = Renewed(source, fresh_seconds=60)
    with pytest.raises(KnowledgeBaseError, match="down"):
        await renewed.get()
    source.fails = False
    assert await renewed.get() == 2


async def test_whoever_gives_up_does_not_end_the_load_of_the_others() -> None:
    source = Source(seconds=0.03)
    renewed = Renewed(source, fresh_seconds=60)
    first = asyncio.create_task(renewed.get())
    second = asyncio.create_task(renewed.get())
    await asyncio.sleep(0.01)
    first.cancel()
    assert await second == 1
    assert source.count == 1


async def test_a_failed_renewal_behind_makes_no_noise() -> None:
    source = Source()
    renewed = Renewed(source, fresh_seconds=0, stale_seconds=60)
    assert await renewed.get() == 1
    source.fails = True
    assert [await renewed.get() for _ in range(3)] == [1, 1, 1]
    await asyncio.sleep(0.01)
    assert source.count > 1


async def test_closing_ends_a_load() -> None:
    renewed = Renewed(Source(seconds=60), fresh_seconds=60)
    waiting = asyncio.create_task(renewed.get())
    await asyncio.sleep(0.01)
    await renewed.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(asyncio.all_tasks()) == 1
