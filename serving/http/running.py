"""The turns that this process is answering, each in a task of its own."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self

from chatbot.domain import Session
from chatbot.events import CLOSING, Event
from serving.http.frames import HEARTBEAT, Position, frame

SETTLE_SECONDS = 6.0  # a little longer than the saving of a stopped turn may take
KEPT_SECONDS = 60.0


class RunningTurn:
    """A turn whose events are kept for whoever reads them, at once or after a broken line.

    The task is its own so that a client that leaves cancels it once and cleanly: a web
    server cancels over and over, also the work that keeps what was said.
    """

    def __init__(
        self,
        session: Session,
        events: AsyncGenerator[Event, None],
        turn_id: str | None = None,
    ) -> None:
        self.session = session
        self.id = turn_id or str(uuid.uuid4())
        self.stopping = False
        self._events: list[tuple[Event, Position]] = []
        self._ended = False
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False
        self._said: list[str] = []
        self._characters = 0
        self.task = asyncio.create_task(self._run(events))
        self.task.add_done_callback(lambda _: self._end())

    def stop(self) -> None:
        """Stop the answer; what was said is kept. An answer that has ended stays as it is."""
        self.stopping = True
        self.task.cancel()

    async def frames(
        self, *, heartbeat_seconds: float, after: int = 0
    ) -> AsyncGenerator[bytes, None]:
        """Yield the events after the first `after` as server-sent events, until the last.

        Where nothing comes, a comment is sent.
        """
        async with aclosing(self.batches(wait_seconds=heartbeat_seconds, after=after)) as read:
            async for batch in read:
                yield b"".join(frame(event, at) for event, at in batch) or HEARTBEAT

    async def batches(
        self, *, wait_seconds: float, after: int = 0
    ) -> AsyncGenerator[Sequence[tuple[Event, Position]], None]:
        """Yield the events after the first `after` as they come, together where they wait.

        A batch without events says that nothing came for so long. There may be any number of
        readers.
        """
        read = after
        while True:
            if read < len(self._events):
                waiting = self._events[read:]
                read += len(waiting)
                yield waiting
            elif self._ended:
                return
            elif not await self._more(wait_seconds):
                yield ()

    async def _more(self, seconds: float) -> bool:
        """Wait for an event or the end; tell whether there was one in time."""
        wakes = asyncio.get_running_loop().create_future()
        self._waiting.add(wakes)
        try:
            async with asyncio.timeout(seconds):
                await wakes
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(wakes)
        return True

    async def _run(self, events: AsyncGenerator[Event, None]) -> None:
        async with aclosing(events):
            async for event in events:
                self._closed = event["type"] in CLOSING
                if event["type"] == "content":
                    self._said.append(event["data"])
                    self._characters += len(event["data"])
                self._add(event)

    def _add(self, event: Event) -> None:
        number = len(self._events) + 1
        at = Position(turn_id=self.id, events=number, characters=self._characters)
        self._events.append((event, at))
        self._wake()

    def _wake(self) -> None:
        for wakes in self._waiting:
            if not wakes.done():
                wakes.set_result(None)

    def _end(self) -> None:
        """Close what was stopped, so that every turn has its closing event."""
        if not self._closed:
            end = {
                "full_answer": "".join(self._said),
                "finish_reason": "stopped",
                "metadata": {},
            }
            self._add({"type": "end", "data": end})
        self._ended = True
        self._wake()


class RunningTurns:
    """Starts turns and ends those that are left at close. Used as a context manager."""

    def __init__(self) -> None:
        self._turns: set[RunningTurn] = set()
        self._latest: dict[Session, RunningTurn] = {}

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
        *,
        turn_id: str | None = None,
        at_end: Callable[[], None] = lambda: None,
    ) -> RunningTurn:
        """Begin to answer; `at_end` is called once, however the turn ends."""
        turn = RunningTurn(session, events, turn_id)
        turn.task.add_done_callback(lambda _: at_end())
        self._turns.add(turn)
        self._latest[session] = turn
        turn.task.add_done_callback(lambda _: self._ended(turn))
        return turn

    def latest(self, user_id: str, session_id: str) -> RunningTurn | None:
        """Return the session's last turn here, while it runs and for a minute after."""
        return self._latest.get(Session(session_id=session_id, user_id=user_id))

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

    def _ended(self, turn: RunningTurn) -> None:
        self._turns.discard(turn)
        with contextlib.suppress(RuntimeError):  # the loop may be closing with the app
            asyncio.get_running_loop().call_later(KEPT_SECONDS, self._forget, turn)

    def _forget(self, turn: RunningTurn) -> None:
        if self._latest.get(turn.session) is turn:
            del self._latest[turn.session]
