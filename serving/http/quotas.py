"""How much may be asked: turns per minute and at once for each user, and streams in all."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, Self

from chatbot.errors import ChatbotError
from chatbot.settings import Settings
from serving.auth import Identity

WINDOW_SECONDS = 60.0
MOST_KNOWN_USERS = 10_000

Release = Callable[[], None]


class TooManyError(ChatbotError):
    """The user, or the whole service, has asked as much as it may for now."""

    code = "too_many_requests"
    retryable = True


@dataclass(frozen=True, kw_only=True, slots=True)
class UserLimits:
    """What each user may ask. A limit of 0 is none."""

    per_minute: int
    at_once: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the limits that the settings name."""
        return cls(per_minute=settings.turns_per_minute, at_once=settings.turns_at_once)

    def check(self, *, running: int, begun: int, wait: float) -> None:
        """Refuse one turn too many; in `wait` seconds the first of the last minute is old.

        Raises:
            TooManyError: It is one too many; `retry_after` is in seconds.
        """
        if self.at_once and running >= self.at_once:
            message = f"You have {running} answers running: wait until one has ended."
            raise TooManyError(message, retry_after=2)
        if self.per_minute and begun >= self.per_minute:
            message = f"You may ask {self.per_minute} questions a minute: wait {wait:.0f} s."
            raise TooManyError(message, retry_after=wait)


class UserTurns(Protocol):
    """The turns of each user: those that run, and those that began in the last minute."""

    async def begin(self, user_id: str) -> Release:
        """Count a turn as running; it is to call what it was given, once, at its end.

        Raises:
            TooManyError: It would be one too many; `retry_after` is in seconds.
        """
        ...


@dataclass(slots=True)
class _Use:
    """When a user's turns of the last minute began, and how many run."""

    begun: deque[float] = field(default_factory=deque)
    running: int = 0


class InMemoryUserTurns:
    """Counts the turns of one process."""

    def __init__(
        self, limits: UserLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._used: dict[str, _Use] = {}

    async def begin(self, user_id: str) -> Release:
        """See `UserTurns.begin`."""
        now = self._clock()
        if len(self._used) >= MOST_KNOWN_USERS:
            self._forget(now)
        use = self._used.setdefault(user_id, _Use())
        while use.begun and use.begun[0] <= now - WINDOW_SECONDS:
            use.begun.popleft()
        wait = use.begun[0] + WINDOW_SECONDS - now if use.begun else 0.0
        self._limits.check(running=use.running, begun=len(use.begun), wait=wait)
        use.begun.append(now)
        use.running += 1

        def release() -> None:
            use.running -= 1

        return release

    def _forget(self, now: float) -> None:
        """Forget who asked nothing lately."""
        for user_id, use in list(self._used.items()):
            if not use.running and (not use.begun or use.begun[-1] <= now - WINDOW_SECONDS):
                del self._used[user_id]


class Quotas:
    """Admits turns: of each user as many as `users` lets begin, of all as many as fit here.

    The turns of a user are counted only where users sign in: everybody else is one user.
    """

    def __init__(self, users: UserTurns, *, open_streams: int) -> None:
        self._users = users
        self._open_streams = open_streams
        self._running = 0

    async def admit(self, caller: Identity) -> Release:
        """Count a turn as running; it is to call what it was given, once, at its end.

        Raises:
            TooManyError: It would be one too many; `retry_after` is in seconds.
        """
        if self._running >= self._open_streams:
            message = "The service is answering as many questions as it can. Try again soon."
            raise TooManyError(message, retry_after=2)
        self._running += 1
        try:
            ended = await self._users.begin(caller.user_id) if caller.signed_in else None
        except BaseException:
            self._running -= 1
            raise

        def release() -> None:
            self._running -= 1
            if ended is not None:
                ended()

        return release


def own_quotas(settings: Settings) -> AbstractAsyncContextManager[Quotas]:
    """Return what this process counts for itself."""
    users = InMemoryUserTurns(UserLimits.of(settings))
    return nullcontext(Quotas(users, open_streams=settings.open_streams))
