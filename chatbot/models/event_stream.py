"""Reads server-sent events from bytes, however they are cut."""

from chatbot.errors import ModelError

LONGEST_EVENT = 16 * 1024 * 1024
_OTHER_LINES = (b":", b"event:", b"id:", b"retry:", b"data")


class EventStream:
    """Takes bytes as they come and gives the data of the events that they complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self.foreign = False  # whether something came that is no line of such a stream

    def feed(self, received: bytes) -> list[bytes]:
        """Return the data of each event that ended in `received`.

        Raises:
            ModelError: An event is longer than any model's.
        """
        if not self._rest and not self._data and _is_one_event(received):
            return [received[6:-2]]
        events: list[bytes] = []
        text = self._rest + received if self._rest else received
        if b"\r" in text:
            text = self._with_plain_ends(text)
        *lines, self._rest = text.split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._add(line)
            elif not line:
                self._take(events)
            elif not line.startswith(_OTHER_LINES):
                self.foreign = True
        if len(self._rest) + self._size > LONGEST_EVENT:
            message = "The language model sent more in one piece than can be read."
            raise ModelError("protocol", message)
        return events

    def end(self) -> list[bytes]:
        """Return the data of a last event that no empty line ended."""
        return self.feed(b"\n\n")

    def _with_plain_ends(self, text: bytes) -> bytes:
        # A carriage return at the very end may be half of an end of line.
        held = b"\r" if text.endswith(b"\r") else b""
        body = text[:-1] if held else text
        return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held

    def _add(self, line: bytes) -> None:
        self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        self._size += len(line)

    def _take(self, events: list[bytes]) -> None:
        """Move the event that has ended to the others; one without data is none."""
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        if data.strip():
            events.append(data)
        self._data = []
        self._size = 0


def _is_one_event(received: bytes) -> bool:
    """Tell the usual read, an event of one line, which needs no taking apart."""
    return (
        received.startswith(b"data: {")
        and received.endswith(b"\n\n")
        and received.find(b"\n") == len(received) - 2
        and b"\r" not in received
        and len(received) <= LONGEST_EVENT
    )
