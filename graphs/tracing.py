"""Describes the turn in its LangSmith trace, where there is one."""

from collections.abc import Sequence
from typing import Any, Protocol

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.tracers.langchain import LangChainTracer
from langgraph.config import get_config
from langsmith.run_helpers import get_current_run_tree, trace

from chatbot.domain import Assistant, Findings, Passage, Session, Turn

SPECULATIVE = {"speculative": True}  # begun before it was known to be wanted
_THREAD = ("thread_id", "session_id", "user_id")
_OF_THE_END = (
    "model",
    "endpoint",
    "attempts",
    "usage",
    "cut",
    "replaces",
    "route_early",
    "prefetch",
    "head_start",
    "finish_reason",
    "first_token_ms",
)


class Searcher(Protocol):
    """The part of a knowledge base that searches."""

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`."""
        ...


def thread_of(session: Session, thread_id: str | None = None) -> dict[str, str]:
    """Return what tells LangSmith, in every run, whose conversation it is and which.

    Runs with one `thread_id` are one thread there: that of LangGraph, which its runs have
    already, else the session, of each user another one.
    """
    return {
        "thread_id": thread_id or session.key,
        "session_id": session.session_id,
        "user_id": session.user_id,
    }


def describe_turn(turn: Turn) -> None:
    """Add to the trace how the turn ended."""
    record = turn.record
    describe_trace(
        turn_id=turn.id,
        status=turn.status,
        total_ms=record.get("total_ms"),
        degraded=list(dict.fromkeys(each["part"] for each in record.get("degraded") or ())),
        error=(record.get("error") or {}).get("code"),
        **{name: record[name] for name in _OF_THE_END if record.get(name) is not None},
    )


def describe_trace(**facts: object) -> str:
    """Add facts to the metadata of the turn's run and of this step; return the trace's id.

    Returns "" when nothing is traced, or the trace is not among those that are sent. The turn's
    run, which is the trace's root unless somebody traces who asks us, is reached through the
    tracer: a step does not know its parent.
    """
    step = get_current_run_tree()
    if step is None:
        return ""
    step.add_metadata(facts)
    samples = getattr(step.client, "samples", None)  # not every client is ours
    trace_id = str(step.trace_id) if samples is None or samples(str(step.trace_id)) else ""
    try:
        callbacks = get_config().get("callbacks")
    except RuntimeError:  # a trace of somebody else, who asked us
        return trace_id
    if isinstance(callbacks, BaseCallbackManager):
        for handler in callbacks.handlers:
            if isinstance(handler, LangChainTracer):
                known = handler.run_map.get(str(step.id))
                turn = known and handler.run_map.get(str(known.parent_run_id))
                if turn is not None:
                    turn.add_metadata(facts)
    return trace_id


async def traced_search(
    knowledge: Searcher,
    query: str,
    *,
    assistants: Sequence[Assistant],
    limit: int,
    **facts: object,
) -> Findings:
    """Search, as a run of the trace with these facts, where there is a trace."""
    step = get_current_run_tree()
    if step is None:
        return await knowledge.search(query, assistants=assistants, limit=limit)
    asked = {"query": query, "assistants": [each.name for each in assistants], "limit": limit}
    thread = {name: step.metadata[name] for name in _THREAD if name in step.metadata}
    with trace("search", "retriever", inputs=asked, metadata={**thread, **facts}) as run:
        found = await knowledge.search(query, assistants=assistants, limit=limit)
        run.end(outputs={"documents": [_document(passage) for passage in found.shown]})
    return found


def _document(passage: Passage) -> dict[str, Any]:
    """Return the passage as LangSmith shows documents."""
    where = {
        "id": passage.id,
        "document": passage.document,
        "assistant": passage.assistant,
        "score": passage.score,
    }
    return {"type": "Document", "page_content": passage.text, "metadata": where}
