"""Who is asking, as the routes see it; and how the page signs in."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from serving.auth import Authenticator, ForbiddenError, Identity
from serving.auth.authenticator import COOKIE, LONGEST_PROOF

router = APIRouter(prefix="/api", tags=["users"])


async def caller_of(request: Request) -> Identity:
    """Return who sent the request.

    Raises:
        SignInError: Users have to sign in, and nobody known here did.
    """
    authenticator: Authenticator = request.app.state.authenticator
    return await authenticator.authenticate(request.headers, cookies=True)


Caller = Annotated[Identity, Depends(caller_of)]


def _user_id(caller: Caller) -> str:
    return caller.user_id


def _operator(caller: Caller) -> Identity:
    if not caller.operator:
        message = "Only an operator may see this. OPERATORS names who is one."
        raise ForbiddenError(message)
    return caller


CurrentUser = Annotated[str, Depends(_user_id)]
Operator = Annotated[Identity, Depends(_operator)]


class SignIn(BaseModel):
    """An API key or a token."""

    token: Annotated[str, Field(min_length=1, max_length=LONGEST_PROOF)]


class User(BaseModel):
    """Who is signed in, and what they may. `assistants` is null where all may be asked."""

    user_id: str
    signed_in: bool
    operator: bool
    assistants: list[str] | None


@router.get("/me")
async def me(caller: Caller) -> User:
    """Tell who is asking."""
    return _user(caller)


@router.post("/sign-in")
async def sign_in(body: SignIn, request: Request, response: Response) -> User:
    """Sign in this browser: the proof becomes a cookie that no script can read."""
    authenticator: Authenticator = request.app.state.authenticator
    proof = body.token.strip()
    caller = await authenticator.authenticate({"authorization": f"Bearer {proof}"})
    if caller.signed_in:
        response.set_cookie(
            COOKIE,
            proof,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path="/",
        )
    return _user(caller)


@router.post("/sign-out", status_code=204)
async def sign_out(response: Response) -> None:
    """Let this browser forget who it was."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def _user(caller: Identity) -> User:
    return User(
        user_id=caller.user_id,
        signed_in=caller.signed_in,
        operator=caller.operator,
        assistants=None if caller.assistants is None else sorted(caller.assistants),
    )
