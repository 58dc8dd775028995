"""What an examination finds."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Literal

from chatbot.settings import Settings

State = Literal["ok", "off", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was examined: `off` is not configured, `advice` says what to do."""

    part: str
    state: State
    detail: str
    advice: str = ""

    def json(self) -> dict[str, str]:
        """Return it as plain JSON."""
        return asdict(self)


Note = Callable[[Finding], None]
Examination = Callable[[Settings, Note], Awaitable[None]]
