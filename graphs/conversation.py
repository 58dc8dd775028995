"""The chatbot as Python uses it: one turn in, typed events out."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from chatbot.domain import (
    ANONYMOUS,
    Assistant,
    Findings,
    Intent,
    Session,
    SessionSummary,
    Turn,
    in_force,
)
from chatbot.errors import InputError
from chatbot.events import Event, error_data
from chatbot.ports import Ports
from chatbot.settings import Settings
from chatbot.statistics import summarised
from graphs.chat import ChatGraph, build_graph
from graphs.keeping import as_known
from graphs.state import Context

COUNTED = 1_000


class Choices(TypedDict, total=False):
    """What one question may choose; see `graphs.state.Context`."""

    session_id: str | None
    user_id: str | None
    assistants: Sequence[str] | None
    route: Intent | None
    language: str | None
    instructions: str | None
    timezone: str | None
    replaces: str | None
    response_schema: Mapping[str, Any] | None
    model_parameters: Mapping[str, Any] | None
    stop: Sequence[str] | None


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


class Chatbot:
    """Answers questions, one turn at a time, and knows the conversations.

    `graph` is the compiled state machine, for `ainvoke` and `astream` with a `Context`.
    """

    def __init__(self, ports: Ports) -> None:
        self.graph: ChatGraph = build_graph(ports)
        self._ports = ports

    @property
    def model_name(self) -> str:
        """The name of the model that answers, or of its kind."""
        model = self._ports.model
        named = model._identifying_params.get("model_name")  # noqa: SLF001 - LangChain's way to tell
        return str(named or model._llm_type)  # noqa: SLF001 - as above

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
        self,
        session_id: str,
        turn_id: str | None = None,
        *,
        user_id: str | None = None,
        route: Intent | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Answer a turn's question again, the last turn's by default, and yield the events.

        The turn and all after it are kept but no longer count, once there is a new answer.

        Raises:
            InputError: There is no such turn.
        """
        turn = await self._turn(session_id, turn_id, user_id)
        events = self.stream(
            turn.question,
            session_id=session_id,
            user_id=user_id,
            route=route,
            replaces=turn.id,
        )
        async with aclosing(events):
            async for event in events:
                yield event

    async def edit(
        self,
        session_id: str,
        turn_id: str,
        question: str,
        *,
        user_id: str | None = None,
        route: Intent | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Ask another question in the place of a turn, and yield the events.

        Raises:
            InputError: There is no such turn.
        """
        turn = await self._turn(session_id, turn_id, user_id)
        events = self.stream(
            question, session_id=session_id, user_id=user_id, route=route, replaces=turn.id
        )
        async with aclosing(events):
            async for event in events:
                yield event

    async def turns(
        self,
        session_id: str,
        *,
        user_id: str | None = None,
        limit: int = 50,
        replaced: bool = False,
    ) -> Sequence[Turn]:
        """Return the newest turns of a session, oldest first; with `replaced`, those as well.

        Raises:
            InputError: An id has the wrong form.
            HistoryError: The history could not be read.
        """
        loaded = await self._ports.history.load(_session(session_id, user_id), limit=limit)
        return loaded.turns if replaced else in_force(loaded.turns)

    async def sessions(
        self, *, user_id: str | None = None, limit: int = 50
    ) -> Sequence[SessionSummary]:
        """Return the user's sessions, the most recently active first.

        Raises:
            HistoryError: The history could not be read.
        """
        return await self._ports.history.sessions(user_id or ANONYMOUS, limit=limit)

    async def clear(self, session_id: str, *, user_id: str | None = None) -> int:
        """Forget a session and return how many turns it had.

        Raises:
            InputError: An id has the wrong form.
            HistoryError: The history could not be written.
        """
        return await self._ports.history.clear(_session(session_id, user_id))

    async def assistants(self) -> Sequence[Assistant]:
        """Return the parts of the knowledge that can be asked.

        Raises:
            KnowledgeBaseError: The list could not be read.
        """
        return await self._ports.knowledge.assistants()

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int = 6
    ) -> Findings:
        """Return the passages about the query, without asking any model.

        Raises:
            KnowledgeBaseError: None of the assistants could be asked.
        """
        return await self._ports.knowledge.search(query, assistants=assistants, limit=limit)

    async def health(self) -> dict[str, str]:
        """Return, for each part that is degraded now, the reason."""
        found = {
            "history": await self._ports.history.check(),
            "knowledge": await self._ports.knowledge.check(),
        }
        return {part: reason for part, reason in found.items() if reason}

    async def statistics(
        self, session_id: str | None = None, *, user_id: str | None = None
    ) -> Mapping[str, Any]:
        """Return turns, intents, errors, degradations and latencies.

        Of a session they are counted from its newest 1,000 turns; without one they are those of
        this process since it started, which `metrics` has in the format of Prometheus.
        """
        if session_id is None:
            return self._ports.statistics.summary()
        session = _session(session_id, user_id)
        return summarised((await self._ports.history.load(session, limit=COUNTED)).turns)

    def metrics(self) -> bytes:
        """Return the statistics of this process in the text format of Prometheus."""
        return self._ports.statistics.exposition()

    async def _turn(self, session_id: str, turn_id: str | None, user_id: str | None) -> Turn:
        session = _session(session_id, user_id)
        if turn_id is not None:
            found = await self._ports.history.find(session, turn_id)
        else:
            turns = in_force((await self._ports.history.load(session, limit=20)).turns)
            found = turns[-1] if turns else None
        if found is None:
            message = "There is no such turn in this conversation."
            raise InputError(message)
        return found

    async def _events(
        self, question: str, turn_id: str | None, choices: Choices
    ) -> AsyncGenerator[Event, None]:
        config: RunnableConfig = {"run_id": uuid.UUID(turn_id) if turn_id else uuid.uuid4()}
        stream = self.graph.astream(
            {"messages": [HumanMessage(question)]},
            config,
            context=Context(**choices),
            stream_mode="custom",
        )
        async with aclosing(cast("AsyncGenerator[Event, None]", stream)) as events:
            async for event in events:
                yield event


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
    from chatbot.bootstrap import open_ports  # noqa: PLC0415 - adapters load when they are used

    async with open_ports(settings or Settings.load(), tools) as ports:
        yield Chatbot(ports)


def _session(session_id: str, user_id: str | None) -> Session:
    return Session(session_id=session_id, user_id=ANONYMOUS if user_id is None else user_id)
