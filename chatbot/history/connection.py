"""The connection to MongoDB: its client, its deadlines, and what its failures mean."""

import asyncio
import logging
import re
import warnings
from collections.abc import AsyncIterator, Mapping
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

TURN_MS = 900  # what the driver may use of it
WAITS = ("timeoutMS", "serverSelectionTimeoutMS", "connectTimeoutMS", "waitQueueTimeoutMS")
OPTIONS: Mapping[str, Any] = {
    "timeoutMS": TURN_MS,
    "serverSelectionTimeoutMS": 400,
    "connectTimeoutMS": 400,
    "maxPoolSize": 20,
    "retryWrites": True,
    "journal": True,
    "appName": "chatbot",
}

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

    The options of the address go before ours. Only the deadlines of `deadline` hold whatever
    they say.

    Raises:
        ConfigurationError: `uri` is not an address of MongoDB.
    """
    pool_lock.mend()
    given = _options(uri)
    ours = {name: value for name, value in OPTIONS.items() if name.lower() not in given}
    if "w" in given:
        ours.pop("journal", None)  # which some of its values exclude
    # The driver's own words, in errors and in warnings, may repeat the password.
    with warnings.catch_warnings(record=True) as ignored:
        warnings.simplefilter("always", UserWarning)
        try:
            client: Client = AsyncMongoClient(uri, **ours, tz_aware=True)
        except (PyMongoError, ValueError, TypeError):
            message = "MONGODB_URI is not a usable address: it looks like mongodb://host:27017"
            raise ConfigurationError(message) from None
    if ignored:
        _log.warning("%d options in MONGODB_URI are unknown or wrong: ignored", len(ignored))
    if longer := [name for name in WAITS if _milliseconds(given.get(name.lower())) > TURN_MS]:
        _log.warning(
            "%s in MONGODB_URI: a turn still waits %g s at most",
            ", ".join(longer),
            TURN_SECONDS,
        )
    return client


def _options(uri: str) -> Mapping[str, str]:
    """Return the options in the address, by their names in small letters."""
    parts = (part.partition("=") for part in re.split("[&;]", uri.partition("?")[2]))
    return {name.lower(): value for name, _, value in parts if name}


def _milliseconds(value: str | None) -> int:
    return int(value) if value and value.isdecimal() else 0


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
        with pymongo.timeout(seconds * TURN_MS / 1000):
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
