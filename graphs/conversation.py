"""The chatbot as Python uses it: one turn in, typed events out."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from chatbot.domain import Intent, Turn
from chatbot.errors import InputError
from chatbot.events import Event, error_data
from chatbot.ports import Ports
from chatbot.settings import Settings
from chatbot.tasks import end
from graphs.chat import ChatGraph, build_graph
from graphs.images import addresses_of, message_of
from graphs.intake import PERMITTED, chosen_before
from graphs.keeping import SAVE_SECONDS, as_known, keep
from graphs.listening import LISTENER, Listener
from graphs.parts import Parts
from graphs.sessions import session_of
from graphs.state import ChatInput, Context
from graphs.tracing import thread_of


class Options(TypedDict, total=False):
    """How a question is answered; see `graphs.state.Context`.

    `images` are files, their bytes, data URLs, https addresses, or addresses of kept images.
    `permitted` names the only assistants that the user may ask; left out, all may be asked.
    """

    images: Sequence[str | bytes | Path] | None
    user_id: str | None
    assistants: Sequence[str] | None
    route: Intent | None
    language: str | None
    instructions: str | None
    timezone: str | None
    permitted: Collection[str] | None
    response_schema: Mapping[str, Any] | None
    model_parameters: Mapping[str, Any] | None
    stop: Sequence[str] | None


class Choices(Options, total=False):
    """What one question may choose: where it is asked, and how it is answered."""

    session_id: str | None
    replaces: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A whole answer. `citations`, `metadata` and `usage` are the data of those events."""

    text: str
    citations: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any]
    usage: Mapping[str, Any]
    finish_reason: str

    def __str__(self) -> str:
        """Return the text alone."""
        return self.text


class Chatbot(Parts):
    """Answers questions, one turn at a time, and knows the conversations.

    `graph` is the compiled state machine, for `ainvoke` and `astream` with a `Context`.
    """

    def __init__(self, ports: Ports) -> None:
        self.graph: ChatGraph = build_graph(ports)
        super().__init__(ports)

    async def stream(
        self, question: str, *, turn_id: str | None = None, **choices: Unpack[Choices]
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of one turn; a failure is its `error` event.

        Leaving the loop early stops the answer, and what was said is kept.
        """
        closed = False
        try:
            async with aclosing(self._events(question, turn_id, choices)) as events:
                async for event in events:
                    closed = event["type"] in {"end", "error"}
                    yield event
        except Exception as error:  # noqa: BLE001 - the outermost layer: told as an event
            known = as_known(error)
            if not closed:
                yield {"type": "error", "data": error_data(known)}

    async def ask(self, question: str, **choices: Unpack[Choices]) -> Answer:
        """Return the whole answer.

        Raises:
            ChatbotError: The turn failed; its class, `code` and `retryable` say how.
        """
        data: dict[str, Any] = {"citations": [], "usage": {}}
        async with aclosing(self._events(question, None, choices)) as events:
            async for event in events:
                data[event["type"]] = event["data"]
        end = data["end"]
        return Answer(
            text=end["full_answer"],
            citations=data["citations"],
            metadata=end["metadata"],
            usage=data["usage"],
            finish_reason=end["finish_reason"],
        )

    async def regenerate(
        self, session_id: str, turn_id: str | None = None, **options: Unpack[Options]
    ) -> AsyncGenerator[Event, None]:
        """Answer a turn's question again, the last one's by default, and yield the events.

        It has the turn's images and is answered as the turn was (language, route and so on),
        but for what is named in `options`, where None goes back to the default. The turn
        and all after it are kept but no longer count, once there is a new answer.

        Raises:
            InputError: There is no such turn.
        """
        turn = await self.turn(session_id, turn_id, user_id=options.get("user_id"))
        async with aclosing(self._replace(turn, turn.question, session_id, options)) as events:
            async for event in events:
                yield event

    async def edit(
        self, session_id: str, turn_id: str, question: str, **options: Unpack[Options]
    ) -> AsyncGenerator[Event, None]:
        """Ask another question in the place of a turn, and yield the events.

        It has the turn's images and is answered as the turn was, but for a route that was
        chosen: it was for the other question. See `regenerate`.

        Raises:
            InputError: There is no such turn.
        """
        turn = await self.turn(session_id, turn_id, user_id=options.get("user_id"))
        async with aclosing(self._replace(turn, question, session_id, options)) as events:
            async for event in events:
                yield event

    def _replace(
        self, turn: Turn, question: str, session_id: str, options: Options
    ) -> AsyncGenerator[Event, None]:
        as_before = {**chosen_before(turn, question), "images": addresses_of(turn)}
        chosen = cast("Options", {**as_before, **options})
        return self.stream(question, session_id=session_id, replaces=turn.id, **chosen)

    def _thread(self, choices: Choices) -> dict[str, Any]:
        """Return what the runs of a trace tell of its session, if that has the right form."""
        named = choices.get("session_id") or self._ports.default_session_id
        try:
            return dict(thread_of(session_of(named, choices.get("user_id"))))
        except InputError:
            return {}  # refused by the first node

    async def _events(
        self, question: str, turn_id: str | None, choices: Choices
    ) -> AsyncGenerator[Event, None]:
        listener = Listener()
        config: RunnableConfig = {
            "metadata": self._thread(choices),
            "run_id": uuid.UUID(turn_id) if turn_id else uuid.uuid4(),
            "configurable": {LISTENER: listener, PERMITTED: choices.get("permitted")},
        }
        chosen: dict[str, Any] = {**choices}
        chosen.pop("permitted", None)
        asked = await message_of(question, chosen.pop("images", None) or (), self._ports)
        messages: ChatInput = {"messages": [asked]}
        running = self.graph.ainvoke(messages, config, context=Context(**chosen))
        run = asyncio.create_task(running, name="turn")
        try:
            async with aclosing(listener.events(run)) as events:
                async for event in events:
                    yield event
        finally:
            run.cancel()  # a step that is cancelled keeps the turn first
            await asyncio.wait({run}, timeout=SAVE_SECONDS)
            await end(run)
            # Left between two steps, no step was there to be cancelled and keep the turn.
            if (turn := listener.turn) is not None and not turn.settled:
                await keep(self._ports, turn, "stopped")


@asynccontextmanager
async def open_chatbot(
    settings: Settings | None = None, *, tools: Sequence[BaseTool] = ()
) -> AsyncIterator[Chatbot]:
    """Open the chatbot that the settings describe, and close it at the end.

    Without settings they are read from the environment and the `.env` files. `tools` are
    offered to the model in its answers.

    Raises:
        ConfigurationError: A setting is wrong.
    """
    # Whatever reads files runs in a thread: other sessions do not wait for it, and a loop that
    # belongs to a server may refuse blocking calls.
    await asyncio.to_thread(import_module, "chatbot.bootstrap")
    from chatbot.bootstrap import open_ports  # noqa: PLC0415 - adapters load when they are used

    known = settings if settings is not None else await asyncio.to_thread(Settings.load)
    async with open_ports(known, tools) as ports:
        yield Chatbot(ports)
