"""How much may be asked: turns per minute and at once for each user, and streams in all."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from chatbot.errors import ChatbotError
from serving.auth import Identity

WINDOW_SECONDS = 60.0
MOST_KNOWN_USERS = 10_000


class TooManyError(ChatbotError):
    """The user, or the whole service, has asked as much as it may for now."""

    code = "too_many_requests"
    retryable = True


@dataclass(slots=True)
class _Use:
    """When a user's turns of the last minute began, and how many run."""

    begun: deque[float] = field(default_factory=deque)
    running: int = 0


class Quotas:
    """Counts the turns of one process. A limit of 0 is none.

    The turns of a user are counted only where users sign in: everybody else is one user.
    """

    def __init__(
        self,
        *,
        per_minute: int,
        at_once: int,
        open_streams: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = per_minute
        self._at_once = at_once
        self._open_streams = open_streams
        self._clock = clock
        self._running = 0
        self._used: dict[str, _Use] = {}

    def admit(self, caller: Identity) -> Callable[[], None]:
        """Count a turn as running; it is to call what it was given, once, at its end.

        Raises:
            TooManyError: It would be one too many; `retry_after` is in seconds.
        """
        if self._running >= self._open_streams:
            message = "The service is answering as many questions as it can. Try again soon."
            raise TooManyError(message, retry_after=2)
        use = self._admit(caller.user_id) if caller.signed_in else _Use()
        self._running += 1
        use.running += 1

        def release() -> None:
            self._running -= 1
            use.running -= 1

        return release

    def _admit(self, user_id: str) -> _Use:
        now = self._clock()
        if len(self._used) >= MOST_KNOWN_USERS:
            self._forget(now)
        use = self._used.setdefault(user_id, _Use())
        while use.begun and use.begun[0] <= now - WINDOW_SECONDS:
            use.begun.popleft()
        if self._at_once and use.running >= self._at_once:
            message = f"You have {use.running} answers running: wait until one has ended."
            raise TooManyError(message, retry_after=2)
        if self._per_minute and len(use.begun) >= self._per_minute:
            wait = use.begun[0] + WINDOW_SECONDS - now
            message = f"You may ask {self._per_minute} questions a minute: wait {wait:.0f} s."
            raise TooManyError(message, retry_after=wait)
        use.begun.append(now)
        return use

    def _forget(self, now: float) -> None:
        """Forget who asked nothing lately."""
        for user_id, use in list(self._used.items()):
            if not use.running and (not use.begun or use.begun[-1] <= now - WINDOW_SECONDS):
                del self._used[user_id]
