"""Events as server-sent events, and where in a turn each of them stands."""

import json
import re
from dataclasses import dataclass
from typing import Self

from chatbot.errors import InputError
from chatbot.events import Event

HEARTBEAT = b": still here\n\n"

_POSITION = re.compile(r"([0-9A-Za-z-]{1,64}):(\d{1,9}):(\d{1,9})", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """How much of a turn was sent: its events, and the characters of its answer.

    The events are those of one process; the characters mean the same in all of them.
    """

    turn_id: str
    events: int = 0
    characters: int = 0

    def __str__(self) -> str:
        """Return what a browser sends back as `Last-Event-ID`."""
        return f"{self.turn_id}:{self.events}:{self.characters}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the position that the text is.

        Raises:
            InputError: It is none of ours.
        """
        if (found := _POSITION.fullmatch(text)) is None:
            message = "Last-Event-ID is not an id of an event of this service."
            raise InputError(message)
        return cls(turn_id=found[1], events=int(found[2]), characters=int(found[3]))


def frame(event: Event, at: Position) -> bytes:
    """Return an event as a server-sent event."""
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"id: {at}\ndata: {data}\n\n".encode(errors="replace")
