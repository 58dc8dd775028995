"""Who asks, and what they may."""

from dataclasses import dataclass

from chatbot.domain import ANONYMOUS
from chatbot.errors import ChatbotError


class SignInError(ChatbotError):
    """Nobody is signed in, or not any more."""

    code = "unauthorized"


class ForbiddenError(ChatbotError):
    """Who is signed in may not do this."""

    code = "forbidden"


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A user, as the proof that came with a request says.

    `assistants` names the only ones that may be asked; none means all. An operator sees the
    metrics and everybody's feedback. `signed_in` is false where nobody has to sign in.
    """

    user_id: str
    assistants: frozenset[str] | None = None
    operator: bool = False
    signed_in: bool = True


# Where nobody has to sign in, everybody is one user, who owns the place.
NOBODY = Identity(user_id=ANONYMOUS, operator=True, signed_in=False)
