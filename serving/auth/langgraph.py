"""Signs users in at LangGraph's own routes, and gives each of them their own threads alone."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

from langgraph_sdk import Auth

from chatbot.errors import ChatbotError
from serving.auth.authenticator import Authenticator
from serving.auth.identity import Identity, SignInError

FindAuthenticator = Callable[[], Awaitable[Authenticator]]
Admit = Callable[[Identity], Awaitable[None]]
READING = {"read", "search"}


def langgraph_auth(find: FindAuthenticator, admit: Admit) -> Auth:
    """Return what `langgraph.json` names under `auth`. `find` waits for the app's opening.

    `admit` counts a run, and raises a ChatbotError where it is one too many.
    """
    auth = Auth()

    @auth.authenticate
    async def authenticate(headers: dict[Any, Any]) -> dict[str, Any]:
        """Return the user, whom nodes see as `runtime.server_info.user`."""
        authenticator = await find()
        try:
            identity = await authenticator.authenticate(_as_text(headers))
        except SignInError as error:
            raise Auth.exceptions.HTTPException(
                status_code=HTTPStatus.UNAUTHORIZED, detail=error.message
            ) from None
        names = identity.assistants
        return {
            "identity": identity.user_id,
            "is_authenticated": identity.signed_in,
            "assistants": None if names is None else sorted(names),
        }

    @auth.on
    async def own(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:  # noqa: ANN401 - LangGraph's kinds of answer
        """Mark what a user makes as theirs, and let them find nothing else."""
        if not ctx.user.is_authenticated:
            return None
        if ctx.resource == "assistants":
            # Those of LangGraph: the graph and its variants, which belong to the server.
            return None if ctx.action in READING else False
        if ctx.resource == "store":
            namespace = tuple(value.get("namespace") or ())
            value["namespace"] = (ctx.user.identity, *namespace)
            return None
        if ctx.action == "create_run":
            try:
                await admit(Identity(user_id=ctx.user.identity))
            except ChatbotError as error:
                seconds = str(ceil(error.retry_after or 1))
                raise Auth.exceptions.HTTPException(
                    status_code=HTTPStatus.TOO_MANY_REQUESTS,
                    detail=error.message,
                    headers={"Retry-After": seconds},
                ) from None
        mine = {"owner": ctx.user.identity}
        if value.get("metadata") is None:
            value["metadata"] = {}
        value["metadata"].update(mine)  # the server holds on to this very one
        return mine

    return auth


def _as_text(headers: Mapping[Any, Any]) -> dict[str, str]:
    """Return the headers as text, their names in small letters; some servers give bytes."""
    return {_text(name).lower(): _text(value) for name, value in headers.items()}


def _text(value: Any) -> str:  # noqa: ANN401 - bytes or text
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
