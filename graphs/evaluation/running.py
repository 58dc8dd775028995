"""Asks the chatbot a labelled question in a session of its own, of which nothing is kept."""

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda

from chatbot.citations import Citation
from chatbot.domain import Assistant, Findings, Passage, SourceFile, Turn
from chatbot.errors import ChatbotError
from chatbot.ports import Ports
from graphs.evaluation.cases import Case, Earlier
from graphs.evaluation.patience import Failure
from graphs.state import Context
from graphs.stateless import Stateless
from graphs.turn import LiveTurn

FIRST = 5  # passages that count
FATAL = ("router", "rewriting", "knowledge")  # parts whose failure makes a case fail


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of a question, as far as the case wanted to know.

    `error` says that it came to nothing; where that was not the chatbot's own doing, `failure`
    says why.
    """

    route: str = ""
    reason: str = ""
    query: str = ""
    passages: Sequence[Passage] = ()
    answer: str = ""
    citations: Sequence[Citation] = ()
    model: str = ""
    trace_id: str = ""
    milliseconds: float = 0
    error: str = ""
    failure: Failure | None = None

    def as_json(self) -> Mapping[str, Any]:
        """Return what there is, as plain JSON; of passages where they stand."""
        found = {**asdict(self)}
        for name in ("passages", "citations"):
            found[name] = [f"{each['document']}#{each['location']}" for each in found[name]]
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenKnowledge:
    """A `KnowledgeBase` of the documents of one case: every search finds all of them."""

    documents: Mapping[str, str]
    _assistant: Assistant = field(default=Assistant(id="given", name="documents"))

    async def assistants(self) -> Sequence[Assistant]:
        """See `KnowledgeBase.assistants`."""
        return [self._assistant]

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`."""
        del query, assistants
        found = [
            Passage(
                id=name,
                text=text,
                document=name,
                document_id=name,
                assistant=self._assistant.name,
                score=0.9,
            )
            for name, text in self.documents.items()
        ]
        return Findings(passages=found[:limit])

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        """See `KnowledgeBase.document`."""
        del assistants
        text = self.documents.get(document_id)
        return None if text is None else SourceFile(name=document_id, content=text.encode())

    async def check(self) -> str:
        """See `KnowledgeBase.check`."""
        return ""


class Bench:
    """Runs cases on the chatbot of these ports. Their history is never touched."""

    def __init__(self, ports: Ports) -> None:
        # What is begun on a guess finds the same, only sooner: here nobody waits.
        self._ports = replace(ports, limits=replace(ports.limits, prefetch=0))
        self._chatbot = Stateless(self._ports)

    async def run(self, case: Case, config: RunnableConfig | None = None) -> Outcome:
        """Return what became of the case's question; what failed is its `error`."""
        start = time.perf_counter()
        run = self._search if case.last_step == "search" else self._turn
        try:
            outcome = await run(case, config or {})
        except ChatbotError as error:
            failure = Failure.of(error)
            outcome = Outcome(error=failure.reason, failure=failure)
        elapsed = round((time.perf_counter() - start) * 1000, 1)
        return replace(outcome, milliseconds=elapsed)

    async def _search(self, case: Case, config: RunnableConfig) -> Outcome:
        """Ask the knowledge base alone, in a run that can be traced."""
        knowledge = self._ports.knowledge
        if case.documents:
            knowledge = GivenKnowledge(documents=case.documents)

        async def search(question: str) -> Findings:
            assistants = await knowledge.assistants()
            return await knowledge.search(question, assistants=assistants, limit=FIRST)

        found = await RunnableLambda(search, name="search").ainvoke(case.question, config)
        failed = " ".join(found.failures.values())
        return Outcome(
            query=case.question,
            passages=found.shown,
            error=failed,
            failure=Failure(reason=failed) if failed else None,
        )

    async def _turn(self, case: Case, config: RunnableConfig) -> Outcome:
        """Run the graph as far as the case goes. What is not measured is left to no chance."""
        chatbot = self._chatbot
        if case.documents:
            given = GivenKnowledge(documents=case.documents)
            chatbot = Stateless(replace(self._ports, knowledge=given, respondent=None))
        session = chatbot.give([_turn_of(each) for each in case.earlier])
        context = Context(
            session_id=session.session_id,
            route=None if case.route else "knowledge_base",
        )
        turn: LiveTurn | None = None
        try:
            steps = chatbot.bot.graph.astream(
                {"messages": [HumanMessage(case.question)]},
                {"run_id": uuid.uuid4(), **config},
                context=context,
                stream_mode="updates",
            )
            async with aclosing(steps):  # type: ignore[type-var]  # it is a generator
                async for step in steps:
                    turn = _update(step, "load_history", "turn") or turn
                    route = _update(step, "route", "route")
                    goes_on = route is None or route.intent == "knowledge_base"
                    if case.last_step in step or (case.last_step != "answer" and not goes_on):
                        break
        finally:
            chatbot.forget(session)
        assert turn is not None  # noqa: S101 - the first step begins it, or raises
        return _outcome(turn)


def _update(step: Mapping[str, Any], node: str, field: str) -> Any:  # noqa: ANN401 - of any node
    return (step.get(node) or {}).get(field)


def _turn_of(earlier: Earlier) -> Turn:
    return Turn(
        id=str(uuid.uuid4()),
        question=earlier.question,
        answer=earlier.answer,
        started_at=datetime.now(UTC),
        record={"intent": earlier.route},
    )


def _outcome(turn: LiveTurn) -> Outcome:
    record = turn.record
    failed = {
        each["reason"]: each["part"] for each in record["degraded"] if each["part"] in FATAL
    }
    return Outcome(
        route=record.get("intent") or "",
        reason=record.get("reason") or "",
        query=record.get("query") or "",
        passages=[Passage(**each) for each in record.get("passages", ())],
        answer=turn.answer,
        citations=[Citation(**each) for each in record.get("citations", ())],
        model=record.get("model") or "",
        trace_id=record.get("trace_id") or "",
        error=" ".join(failed),
        failure=next(filter(None, (_failure(turn, *each) for each in failed.items())), None),
    )


def _failure(turn: LiveTurn, reason: str, part: str) -> Failure | None:
    """Return why a part failed. A router that decides nothing is no failure, but a bad one."""
    if (cause := turn.causes.get(part)) is not None:
        return Failure.of(cause)
    return None if part == "router" else Failure(reason=reason)
