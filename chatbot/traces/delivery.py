"""Tells, once and in plain words, that LangSmith takes no traces."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import requests
from langsmith.utils import LangSmithConflictError

logger = logging.getLogger(__name__)

QUIET_SECONDS = 600.0  # until what goes on failing is told again
AGAIN_SECONDS = 60.0  # the same, if it worked in between
_REFUSED = frozenset({401, 403})
_TOO_MANY = 429
_BROKEN = 500
_CHECK = "check LANGSMITH_ENDPOINT and the network"
# What the library says about each request that fails, in its own way.
_ITS_WORDS = ("Failed to ", "Run compression is not enabled", "LangSmith tracing error: ")


class Delivery:
    """Whether traces arrive. Used by the threads that send them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way = 0
        self._fails = False
        self._told_at = -math.inf
        self._quiet_until = -math.inf

    @property
    def under_way(self) -> int:
        """How many requests are being sent."""
        return self._under_way

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Note whether the request that is made in this block is taken."""
        self._count(1)
        try:
            yield
        except LangSmithConflictError:  # it has them already
            self.worked()
            raise
        except Exception as error:
            self.failed(error)
            raise
        else:
            self.worked()
        finally:
            self._count(-1)

    def _count(self, number: int) -> None:
        with self._lock:
            self._under_way += number

    def worked(self) -> None:
        """Take note that traces were taken."""
        with self._lock:
            again, self._fails = self._fails, False
            self._quiet_until = self._told_at + AGAIN_SECONDS
        if again:
            logger.info("Traces reach LangSmith again.")

    def failed(self, error: BaseException) -> None:
        """Tell why traces were not taken, unless that was told a short while ago."""
        now = self._clock()
        with self._lock:
            self._fails = True
            if now < self._quiet_until:
                return
            self._told_at, self._quiet_until = now, now + QUIET_SECONDS
        logger.warning(
            "Traces do not reach LangSmith: %s. Turns go on without.", reason_of(error)
        )


def reason_of(error: BaseException) -> str:
    """Return what LangSmith does instead of what it should, and what to check."""
    status = _status(error)
    if status in _REFUSED:
        return (
            f"it refuses LANGSMITH_API_KEY (status {status}); make a new key, "
            "or set LANGSMITH_ENDPOINT to the region of this one"
        )
    if status == _TOO_MANY:
        return f"it takes no more for now (status {status}); look at the limits of your plan"
    if status is not None and status >= _BROKEN:
        return f"it is out of order (status {status}); try again later"
    if status is not None:
        return f"it refuses what is sent (status {status}); check LANGSMITH_ENDPOINT"
    if isinstance(error, requests.Timeout | TimeoutError):
        return f"it does not answer in time; {_CHECK}"
    return f"it cannot be reached ({type(error).__name__}); {_CHECK}"


def quieten(library: logging.Logger) -> None:
    """Have the library say nothing about single requests, but with the level DEBUG."""
    library.addFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    its_own = str(record.msg).startswith(_ITS_WORDS)
    return not its_own or logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


def _status(error: BaseException | None) -> int | None:
    """Return the status that LangSmith answered with, if it answered."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, requests.Response):
            return response.status_code
        error = error.__cause__ or error.__context__
    return None
