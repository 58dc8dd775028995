"""What an examination finds."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Literal

from chatbot.settings import Settings

State = Literal["ok", "off", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was examined: `off` is not configured, `advice` says what to do.

    Of a `series`, such as "files are not searched", people are shown the first few.
    """

    part: str
    state: State
    detail: str
    advice: str = ""
    series: str = ""

    def json(self) -> dict[str, str]:
        """Return it as plain JSON."""
        return {key: value for key, value in asdict(self).items() if key != "series"}


Note = Callable[[Finding], None]
Examination = Callable[[Settings, Note], Awaitable[None]]
