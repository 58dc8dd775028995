"""Who is asking: API keys and signed tokens, one answer for every way in."""

from serving.auth.authenticator import Authenticator
from serving.auth.identity import NOBODY, ForbiddenError, Identity, SignInError

__all__ = ["NOBODY", "Authenticator", "ForbiddenError", "Identity", "SignInError"]
