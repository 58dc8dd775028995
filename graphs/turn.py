"""One turn while it is worked on: what was said so far, and what is noted of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from langchain_core.messages import AIMessage

from chatbot.domain import Assistant, Session, Turn, TurnStatus, permitted
from chatbot.errors import ChatbotError, DeadlineError
from chatbot.events import EventType, closing_events, metadata_of
from graphs.head_start import HeadStart
from graphs.metering import Asides
from graphs.prefetching import Prefetch

Emit = Callable[[Mapping[str, Any]], None]
Update = TypeVar("Update")


class LiveTurn:
    """The turn in progress. Steps report to it; its events and its record come from it.

    `emit` takes each event, `deadline` is a time of the running event loop. `let_go` frees the
    session, once the turn holds it, which `begun` says. `finished` says that the answer is
    whole, `settled` that the history has what it is to have of it. `so_far` tells what is to be
    noted of an answer that is being written. `elsewhere` are the assistants that the caller did
    not name, should all those fail that he did. `out_of_sight` are turns that no prompt shows;
    `images` are the question's, `earlier_images` those of earlier turns, by their ids. `asides`
    are the model's calls beside the answer. `causes` has the last error of each part that is
    degraded by one.
    """

    def __init__(
        self, *, session: Session, turn_id: str, question: str, emit: Emit, deadline: float
    ) -> None:
        self.session = session
        self.id = turn_id
        self.question = question
        self.answer = ""
        self.begun = False
        self.finished = False
        self.settled = False
        self.broken_off: ChatbotError | None = None
        self._deadline = deadline
        self._limit: asyncio.Timeout | None = None
        self.record: dict[str, Any] = {"degraded": [], "timings": {}}
        self.causes: dict[str, ChatbotError] = {}
        self.asides = Asides()
        self._emit = emit
        self.started_at = datetime.now(UTC)
        self._clock = time.perf_counter()
        self._metadata_sent = False
        self._closed = False
        self._half_character = ""
        self._running = 0
        self._ended = 0
        self.let_go: Callable[[], Coroutine[Any, Any, None]] = _nothing
        self.so_far: Callable[[], Mapping[str, Any]] = dict
        self.prefetch: Prefetch | None = None
        self.head_start: HeadStart | None = None
        self.images: Sequence[Mapping[str, Any]] = ()
        self.earlier_images: Mapping[str, Sequence[Mapping[str, Any]]] = {}
        self.permitted: frozenset[str] | None = None
        self.elsewhere: Sequence[Assistant] = ()
        self.out_of_sight: Sequence[Turn] = ()

    def note(self, **facts: object) -> None:
        """Add to the audit record, plain JSON only."""
        self.record.update(facts)

    def those_permitted(self, assistants: Sequence[Assistant]) -> Sequence[Assistant]:
        """Return those of the assistants that the user may ask."""
        return permitted(assistants, self.permitted)

    def degrade(self, part: str, reason: str, cause: ChatbotError | None = None) -> None:
        """Note that a part of the service did not work as it should, due to an error or not."""
        if cause is not None:
            self.causes[part] = cause
        entry = {"part": part, "reason": reason}
        if entry not in self.record["degraded"]:
            self.record["degraded"].append(entry)

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the turn began."""
        return round((time.perf_counter() - self._clock) * 1000, 1)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Note how long a step took, also when it fails."""
        start = time.perf_counter()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._ended += 1
            self.record["timings"][step] = round((time.perf_counter() - start) * 1000, 1)

    async def before_deadline(self, work: Awaitable[Update]) -> Update:
        """Return what a step of the turn returns.

        Raises:
            DeadlineError: The turn took too long.
            ChatbotError: The turn was broken off.
        """
        limit = self._limit = asyncio.timeout_at(self._deadline)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            message = "The answer took too long. Please try again, or ask for less at once."
            raise self.broken_off or DeadlineError(message) from None
        finally:
            self._limit = None

    def break_off(self, error: ChatbotError) -> None:
        """End the turn with this error, at once or as soon as its next step begins."""
        if self.finished or self.broken_off:
            return
        self.broken_off = error
        self._deadline = 0
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._deadline)

    @property
    def last_step(self) -> int | None:
        """How many steps have ended, or nothing while one is running."""
        return None if self._running else self._ended

    def send(self, kind: EventType, data: object) -> None:
        """Emit one event, the metadata first where it is still owed."""
        if kind != "stage":
            self.send_metadata()
        self._emit({"type": kind, "data": data})

    def stage(self, name: str, detail: str = "") -> None:
        """Say what is being done now."""
        self._emit({"type": "stage", "data": {"name": name, "detail": detail}})

    def say(self, text: str) -> None:
        """Emit a piece of the answer and keep it."""
        text = self._whole_characters(text)
        if not text:
            return
        if "first_token_ms" not in self.record:
            self.record["first_token_ms"] = self.elapsed_ms()
        self.answer += text
        self.send("content", text)

    def correct(self, text: str) -> None:
        """Take `text` for the whole answer, where what was said can be mended at its end only.

        What was emitted stays; the closing event has the answer as it is now.
        """
        self.answer = _joined(text)

    def _whole_characters(self, text: str) -> str:
        """Return the text without half a character at its end, which waits for the next piece.

        Some endpoints cut a piece inside a surrogate pair; alone it cannot be sent or stored.
        """
        if not self._half_character and text.isascii():
            return text
        text = self._half_character + text
        self._half_character = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half_character = text[:-1], text[-1]
        return _joined(text)

    def replay(self, done: Turn) -> None:
        """Give the answer of a turn that was completed before, and close."""
        self.answer = ""
        self.record = {**self.record, **done.record}
        self.say(done.answer)
        self.finished = True
        self.close()

    def close(self, status: TurnStatus = "complete") -> None:
        """Emit what belongs behind the answer, once: citations, usage, the end."""
        if self._closed:
            return
        self._closed = True
        for event in closing_events(self.session.session_id, self.kept_as(status)):
            self.send(event["type"], event["data"])

    def answer_message(self, message_id: str | None = None) -> AIMessage:
        """Return the answer for the thread. The id is that of the streamed chunks, if any."""
        return AIMessage(
            content=self.answer,
            id=message_id or f"{self.id}-answer",
            response_metadata={"turn_id": self.id},
        )

    def drop_prefetch(self) -> None:
        """End the searches that were begun before they were wanted, and note what they were."""
        if self.prefetch is not None:
            self.note(prefetch="used" if self.prefetch.used else "unused")
            self.prefetch.cancel()
            self.prefetch = None

    def drop_head_start(self) -> None:
        """End the answer that was begun before it was wanted, and note what it was."""
        if self.head_start is not None:
            self.note(head_start="unused")
            self.asides.note(self.head_start.cancel(), "head_start")
            self.head_start = None

    def drop_guesses(self) -> None:
        """End all that was begun before it was wanted."""
        self.drop_head_start()
        self.drop_prefetch()

    def degraded_parts(self) -> list[str]:
        """Return the parts of the service that did not work as they should."""
        return [entry["part"] for entry in self.record["degraded"]]

    def send_metadata(self) -> None:
        """Emit the metadata, once."""
        if not self._metadata_sent:
            self._metadata_sent = True
            self._emit({"type": "metadata", "data": self.metadata()})

    def metadata(self) -> dict[str, Any]:
        """Return the data of the metadata event, as far as it is known."""
        return metadata_of(self.session.session_id, self.kept_as("complete"))

    def kept_as(self, status: TurnStatus) -> Turn:
        """Return the turn as the history keeps it."""
        record = {**self.record, **self.so_far(), "total_ms": self.elapsed_ms()}
        return Turn(
            id=self.id,
            question=self.question,
            answer=self.answer,
            status=status,
            started_at=self.started_at,
            record=self.asides.added_to(record),
        )

    def model_dump(self) -> dict[str, Any]:
        """Return the turn as plain JSON, for clients that stream the graph's state."""
        return {**self.metadata(), "answer": self.answer, "record": dict(self.record)}

    def to_dict(self) -> dict[str, Any]:
        """Return what traces show of the turn among what a step takes and gives."""
        return {"id": self.id, "question": self.question}

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        """Pickle as plain JSON: the LangGraph server keeps what it streams in a file."""
        return dict, (self.model_dump(),)


def _joined(text: str) -> str:
    """Return the text with the halves of its characters put together, or replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _nothing() -> None:
    """Free nothing: the turn holds nothing yet."""
