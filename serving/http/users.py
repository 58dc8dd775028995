"""Says who is asking: the one place where authentication comes in."""

from typing import Annotated

from fastapi import Depends, Request

from chatbot.domain import ANONYMOUS


def current_user(request: Request) -> str:
    """Return the id of the user who sent the request; everybody is one user for now."""
    del request
    return ANONYMOUS


CurrentUser = Annotated[str, Depends(current_user)]
