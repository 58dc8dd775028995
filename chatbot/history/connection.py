"""The connection to MongoDB: its client, its deadlines, and what its failures mean."""

import asyncio
import logging
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pymongo
from bson.errors import BSONError
from pymongo import AsyncMongoClient
from pymongo.errors import (
    ConnectionFailure,
    ExecutionTimeout,
    InvalidOperation,
    OperationFailure,
    PyMongoError,
    WaitQueueTimeoutError,
    WriteConcernError,
    WTimeoutError,
)

from chatbot.errors import ConfigurationError, HistoryError
from chatbot.history import pool_lock

Client = AsyncMongoClient[dict[str, Any]]

TURN_SECONDS = 1.0  # what a turn may lose to a server that hangs
IMAGE_SECONDS = 5.0
TASK_SECONDS = 10.0  # for what people start by hand: clear a session, list, search
INDEX_SECONDS = 300.0  # for an index over what a large collection already holds

REFUSED_CODES = {11, 13, 18}  # unknown user, unauthorised, authentication failed
ATLAS_ERROR = 8000  # of any kind, also that the space is used up
_log = logging.getLogger(__name__)
TRANSIENT = (
    ConnectionFailure,
    ExecutionTimeout,
    WaitQueueTimeoutError,
    WriteConcernError,
    WTimeoutError,
)


def open_client(uri: str) -> Client:
    """Return a client for this process and its running event loop. It connects when used.

    Raises:
        ConfigurationError: `uri` is not an address of MongoDB.
    """
    pool_lock.mend()
    # The driver's own words, in errors and in warnings, may repeat the password.
    with warnings.catch_warnings(record=True) as ignored:
        warnings.simplefilter("always", UserWarning)
        try:
            client: Client = AsyncMongoClient(
                uri,
                timeoutMS=900,
                serverSelectionTimeoutMS=400,
                connectTimeoutMS=400,
                maxPoolSize=20,
                retryWrites=True,
                journal=True,
                tz_aware=True,
                appname="chatbot",
            )
        except (PyMongoError, ValueError, TypeError):
            message = "MONGODB_URI is not a usable address: it looks like mongodb://host:27017"
            raise ConfigurationError(message) from None
    if ignored:
        _log.warning("%d options in MONGODB_URI are unknown or wrong: ignored", len(ignored))
    return client


@asynccontextmanager
async def deadline(seconds: float = TURN_SECONDS) -> AsyncIterator[None]:
    """Bound the calls in the block and turn what the driver raises into our errors.

    Raises:
        ConfigurationError: The server refuses the credentials of MONGODB_URI.
        HistoryError: The server did not do it. `retryable` says whether it may do it later.
    """
    try:
        # Either may miss: the driver's limit while it looks for a server, asyncio's when the
        # driver happens to swallow the cancellation.
        with pymongo.timeout(seconds * 0.9):
            async with asyncio.timeout(seconds):
                yield
    except TimeoutError:
        message = f"MongoDB did not answer within {seconds:g} s."
        raise HistoryError(message) from None
    except (PyMongoError, BSONError, OverflowError) as error:
        raise _translated(error) from None


def _translated(error: Exception) -> ConfigurationError | HistoryError:
    if isinstance(error, OperationFailure) and _is_refused(error):
        return ConfigurationError(
            "MongoDB refuses the user or password in MONGODB_URI, or the user may not read and "
            "write the database of MONGODB_DB: correct the setting or the user's rights."
        )
    kind = type(error).__name__
    if _transient(error):
        return HistoryError(f"MongoDB cannot be reached ({kind}).")
    code = f" {error.code}" if isinstance(error, OperationFailure) else ""
    failure = HistoryError(f"MongoDB refused the operation ({kind}{code}).")
    failure.retryable = False
    return failure


def _is_refused(error: OperationFailure) -> bool:
    if error.code == ATLAS_ERROR:
        return "auth" in str(error).lower()
    return error.code in REFUSED_CODES


def _transient(error: Exception) -> bool:
    if isinstance(error, TRANSIENT) or getattr(error, "timeout", False):
        return True
    if isinstance(error, OperationFailure):
        return error.has_error_label("RetryableWriteError") or _write_concern(error)
    # A closed client, and a host name that cannot be looked up.
    return isinstance(error, InvalidOperation | pymongo.errors.ConfigurationError)


def _write_concern(error: OperationFailure) -> bool:
    details = error.details or {}
    return bool(details.get("writeConcernErrors")) and not details.get("writeErrors")
