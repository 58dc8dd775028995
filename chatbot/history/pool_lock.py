"""Keeps the lock of the driver's pool whole where a wait for it is cancelled."""

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

import pymongo.lock

Result = TypeVar("Result")


def mend() -> None:
    """Let the driver wait as from Python 3.12 on.

    Before, a wait that is cancelled just when its time is over leaves a task behind that takes
    the lock and never gives it back: every later call of the process waits for ever.
    """
    if sys.version_info < (3, 12):
        pymongo.lock.wait_for = _wait_for  # type: ignore[attr-defined,assignment]


async def _wait_for(awaitable: Awaitable[Result], timeout: float | None) -> Result:  # noqa: ASYNC109 - the signature of asyncio.wait_for
    async with asyncio.timeout(timeout):
        return await awaitable
