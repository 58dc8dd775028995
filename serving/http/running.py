"""The turns that this process is answering, each in a task of its own."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Self

from chatbot.domain import Session
from chatbot.events import CLOSING, Event

SETTLE_SECONDS = 6.0  # a little longer than the saving of a stopped turn may take

_HEARTBEAT = b": still here\n\n"


class RunningTurn:
    """A turn whose events wait for their reader.

    The task is its own so that a client that leaves cancels it once and cleanly: a web
    server cancels over and over, also the work that keeps what was said.
    """

    def __init__(self, session: Session, events: AsyncGenerator[Event, None]) -> None:
        self.session = session
        self.stopping = False
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._closed = False
        self._said: list[str] = []
        self.task = asyncio.create_task(self._run(events))
        self.task.add_done_callback(lambda _: self._end())

    def stop(self) -> None:
        """Stop the answer; what was said is kept. An answer that has ended stays as it is."""
        self.stopping = True
        self.task.cancel()

    async def frames(self, *, heartbeat_seconds: float) -> AsyncGenerator[bytes, None]:
        """Yield the events as server-sent events, and a comment where nothing comes."""
        while True:
            try:
                async with asyncio.timeout(heartbeat_seconds):
                    waiting = [await self._events.get()]
            except TimeoutError:
                yield _HEARTBEAT
                continue
            while not self._events.empty():
                waiting.append(self._events.get_nowait())
            if frames := b"".join(_frame(event) for event in waiting if event is not None):
                yield frames
            if waiting[-1] is None:
                return

    async def _run(self, events: AsyncGenerator[Event, None]) -> None:
        async with aclosing(events):
            async for event in events:
                self._closed = event["type"] in CLOSING
                if event["type"] == "content":
                    self._said.append(event["data"])
                self._events.put_nowait(event)

    def _end(self) -> None:
        """Close what was stopped, so that every turn has its closing event."""
        if not self._closed:
            end = {
                "full_answer": "".join(self._said),
                "finish_reason": "stopped",
                "metadata": {},
            }
            self._events.put_nowait({"type": "end", "data": end})
        self._events.put_nowait(None)


class RunningTurns:
    """Starts turns and ends those that are left at close. Used as a context manager."""

    def __init__(self) -> None:
        self._turns: set[RunningTurn] = set()

    async def __aenter__(self) -> Self:
        """Return itself, without any turn."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop what is still running, and wait until it is kept."""
        tasks = [turn.task for turn in self._turns]
        for turn in tuple(self._turns):
            turn.stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    def start(
        self,
        session: Session,
        events: AsyncGenerator[Event, None],
        at_end: Callable[[], None] = lambda: None,
    ) -> RunningTurn:
        """Begin to answer; `at_end` is called once, however the turn ends."""
        turn = RunningTurn(session, events)
        turn.task.add_done_callback(lambda _: at_end())
        self._turns.add(turn)
        turn.task.add_done_callback(lambda _: self._turns.discard(turn))
        return turn

    async def stop(self, user_id: str, session_id: str) -> int:
        """Stop the session's answers, wait until they are kept, and return how many."""
        turns = [
            turn
            for turn in self._turns
            if turn.session == Session(session_id=session_id, user_id=user_id)
        ]
        for turn in turns:
            turn.stop()
        await self.settled(user_id, session_id)
        return len(turns)

    async def settled(self, user_id: str, session_id: str | None = None) -> None:
        """Wait until the stopped turns of the session, or of all the user's, are kept.

        So whoever stops an answer and then reads sees what was said.
        """
        stopping = {
            turn.task
            for turn in self._turns
            if turn.stopping
            and turn.session.user_id == user_id
            and session_id in {None, turn.session.session_id}
        }
        if stopping:
            await asyncio.wait(stopping, timeout=SETTLE_SECONDS)


def _frame(event: Event) -> bytes:
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"data: {data}\n\n".encode(errors="replace")
