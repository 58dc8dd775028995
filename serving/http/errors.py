"""Gives every failure of our routes one shape, and never a stack trace."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import (
    http_exception_handler,
    request_validation_exception_handler,
)
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import Receive, Send

from chatbot.errors import (
    BusyError,
    ChatbotError,
    DeadlineError,
    InputError,
    ModelError,
    StoppedError,
    TooLargeError,
    UnavailableError,
)
from chatbot.validation import rule_of
from serving.auth import ForbiddenError, SignInError
from serving.http.paths import is_ours, path_of
from serving.http.quotas import TooManyError

SHOWN_PROBLEMS = 3


class NotFoundError(ChatbotError):
    """What was asked for does not exist, or not for this user."""

    code = "not_found"


STATUSES: tuple[tuple[type[ChatbotError], HTTPStatus], ...] = (
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (SignInError, HTTPStatus.UNAUTHORIZED),
    (ForbiddenError, HTTPStatus.FORBIDDEN),
    (TooManyError, HTTPStatus.TOO_MANY_REQUESTS),
    (TooLargeError, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (BusyError, HTTPStatus.CONFLICT),
    (StoppedError, HTTPStatus.CONFLICT),
    (DeadlineError, HTTPStatus.GATEWAY_TIMEOUT),
    (UnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ModelError, HTTPStatus.BAD_GATEWAY),
)
CODES = {
    HTTPStatus.NOT_FOUND: ("not_found", "There is nothing at this address."),
    HTTPStatus.METHOD_NOT_ALLOWED: (
        "method_not_allowed",
        "This address does not take this method.",
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("too_large", "The request is too large."),
    HTTPStatus.BAD_REQUEST: ("invalid_input", "The request could not be read."),
}


class ErrorDetail(BaseModel):
    """A stable code, a sentence for people, and whether to try again (in how many seconds)."""

    code: str
    message: str
    retryable: bool = False
    retry_after: float | None = None


class ErrorReply(BaseModel):
    """What every route answers when it fails."""

    error: ErrorDetail


def error_response(
    status: int,
    code: str,
    message: str,
    *,
    retryable: bool = False,
    retry_after: float | None = None,
) -> JSONResponse:
    """Return the failure as a response."""
    detail = ErrorDetail(
        code=code, message=message, retryable=retryable, retry_after=retry_after
    )
    headers = {"Cache-Control": "no-store"}
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, round(retry_after)))
    return JSONResponse(ErrorReply(error=detail).model_dump(), status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Let the app answer failures of our routes in our shape, those of others in theirs."""
    app.add_exception_handler(ChatbotError, _known)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)


@asynccontextmanager
async def handled(request: Request, receive: Receive, send: Send) -> AsyncIterator[None]:
    """Answer a failure of the block in our shape, for apps that are no routes."""
    try:
        yield
    except ChatbotError as error:
        response = await _known(request, error)
        await response(request.scope, receive, send)


async def _known(_: Request, error: Exception) -> Response:
    known = cast("ChatbotError", error)
    found = (status for kind, status in STATUSES if isinstance(known, kind))
    status = next(found, HTTPStatus.INTERNAL_SERVER_ERROR)
    response = error_response(
        status,
        known.code,
        known.message,
        retryable=known.retryable,
        retry_after=known.retry_after,
    )
    if status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


async def _http(request: Request, error: Exception) -> Response:
    known = cast("HTTPException", error)
    if not is_ours(path_of(request.scope)):
        return await http_exception_handler(request, known)
    status = HTTPStatus(known.status_code)
    code, message = CODES.get(status, (status.name.lower(), f"{status.phrase}."))
    response = error_response(status, code, message)
    response.headers.update(known.headers or {})
    return response


async def _invalid(request: Request, error: Exception) -> Response:
    known = cast("RequestValidationError", error)
    if not is_ours(path_of(request.scope)):
        return await request_validation_exception_handler(request, known)
    problems = [_sentence(problem) for problem in known.errors()[:SHOWN_PROBLEMS]]
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return error_response(status, InputError.code, " ".join(problems))


def _sentence(problem: dict[str, Any]) -> str:
    """Say what is wrong without repeating what was sent."""
    if problem["type"] == "json_invalid":
        return "The body must be JSON."
    if problem["type"] == "extra_forbidden":
        return f"There is no field {_name(problem)}."
    return f"{_name(problem) or 'body'}: {rule_of(problem)}."


def _name(problem: dict[str, Any]) -> str:
    return ".".join(str(part) for part in problem["loc"][1:])[:100]
