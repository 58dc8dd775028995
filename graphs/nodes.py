"""The steps of a turn, one function each."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from chatbot.domain import Outcome
from chatbot.errors import HistoryError, KnowledgeBaseError, KnowledgeFailure
from chatbot.events import error_data, metadata_of_none
from chatbot.knowledge.ranking import mentioned, rank
from chatbot.ports import Ports
from chatbot.queries import usable_rewrite
from graphs.answering import stream_answer
from graphs.intake import choices_of, permitted_of
from graphs.keeping import as_known, dismiss, keep, log_turn, running
from graphs.listening import listener_of
from graphs.notices import say_notice
from graphs.opening import begin, open_turn
from graphs.prefetching import Prefetch
from graphs.requesting import begin_answer, pipeline_of, request_of
from graphs.responding import alone
from graphs.router import Choice, chosen, decide, rewrite
from graphs.searching import outcome_of, search
from graphs.state import ChatState, ChatUpdate, Context, Route
from graphs.summing import begin_summary
from graphs.tracing import describe_trace
from graphs.turn import LiveTurn

SHOWN_TO_ROUTER = 30


async def load_history(
    state: ChatState, runtime: Runtime[Context], config: RunnableConfig, *, ports: Ports
) -> ChatUpdate:
    """Check what the run was given, begin the turn, and load what was said before."""
    listener = listener_of(config)
    emit = runtime.stream_writer if listener is None else listener.emit
    turn = None
    if ports.limits.route_early:
        ports.background.start("assistants", partial(_list_assistants, ports))
    try:
        turn = begin(state, runtime, ports, emit=emit)
        if listener is not None:
            listener.turn = turn
        turn.permitted = permitted_of(runtime, config)
        with turn.timed("load_history"):
            return await turn.before_deadline(open_turn(turn, state, runtime, config, ports))
    except asyncio.CancelledError:
        if turn is not None:
            await keep(ports, turn, "stopped")
        raise
    except Exception as error:
        known = as_known(error)
        describe_trace(status="refused", error=known.code)
        if turn is not None:
            await dismiss(turn)
            turn.send_metadata()
        else:
            emit({"type": "metadata", "data": metadata_of_none()})
        emit({"type": "error", "data": error_data(known)})
        ports.statistics.count_refused(known)
        raise known from error


async def _list_assistants(ports: Ports) -> None:
    """Have the list of the assistants loaded beside the history: the next step asks for it."""
    with suppress(KnowledgeBaseError, TimeoutError):
        async with asyncio.timeout(ports.limits.knowledge_seconds):
            await ports.knowledge.assistants()


async def route(state: ChatState, runtime: Runtime[Context], *, ports: Ports) -> ChatUpdate:
    """Decide whether the question needs the knowledge base, and whom to ask."""
    turn, choices = running(state), choices_of(runtime)
    turn.stage("routing")
    if ports.tool_servers is not None:
        ports.tool_servers.wake()
    update: ChatUpdate = {}
    try:
        async with asyncio.timeout(ports.limits.knowledge_seconds):
            known = await ports.knowledge.assistants()
    except (KnowledgeBaseError, TimeoutError) as error:
        failure = (
            error
            if isinstance(error, KnowledgeBaseError)
            else KnowledgeBaseError("unavailable", "The knowledge base did not answer in time.")
        )
        turn.degrade("knowledge", failure.message, failure)
        known, update["outcome"] = [], outcome_of(failure)
    if known and not (known := turn.those_permitted(known)):
        turn.degrade("knowledge", "None of the assistants may be asked by this user.")
        update["outcome"] = "forbidden"
    named = chosen(choices.assistants, known)
    if known and (missing := [n for n in choices.assistants if not chosen([n], known)]):
        reason = f"There is no assistant named {', '.join(missing)}; others are asked instead."
        turn.degrade("assistants", reason)
    available = named or known
    turn.elsewhere = [each for each in known if each not in available]
    if ports.limits.prefetch and not state.history and choices.route != "general_chat":
        turn.prefetch = Prefetch(
            ports.knowledge,
            turn.question,
            rank(turn.question, available, ports.limits.prefetch),
            limit=ports.limits.passages,
        )
    by_words = choices.response_schema is None and not turn.images
    may_begin = ports.limits.head_start and ports.respondent is None and by_words

    def looks_up() -> None:
        if turn.prefetch is not None and may_begin:
            turn.head_start = begin_answer(
                state, runtime, ports, prefetch=turn.prefetch, available=available
            )

    decision = await decide(
        turn,
        ports,
        Choice(
            pipeline=pipeline_of(state, runtime, ports),
            assistants=rank(turn.question, available, SHOWN_TO_ROUTER),
            forced=choices.route,
            looks_up=looks_up,
        ),
    )
    if decision.intent == "general_chat":
        turn.drop_guesses()
    turn.note(intent=decision.intent, reason=decision.reason)
    describe_trace(
        intent=decision.intent,
        route_reason=decision.reason,
        route_early=turn.record.get("route_early", "none"),
    )
    update |= {"route": decision, "assistants": available}
    if decision.intent == "knowledge_base" and ports.respondent is not None and by_words:
        asked = decision.assistants or mentioned(turn.question, available)
        update["respondent"] = alone(asked, available)
    return update


async def enhance_query(
    state: ChatState, runtime: Runtime[Context], *, ports: Ports
) -> ChatUpdate:
    """Make the question stand alone: as the router put it, else as a model call puts it."""
    turn, decision = running(state), _route(state)
    query = turn.question
    if state.history:
        query = usable_rewrite(turn.question, decision.question)
        if not query:
            turn.stage("rewriting")
            pipeline = pipeline_of(state, runtime, ports)
            query = await rewrite(turn, ports, pipeline) or turn.question
    turn.note(query=query)
    describe_trace(query=query)
    return {"query": query}


async def retrieve(state: ChatState, runtime: Runtime[Context], *, ports: Ports) -> ChatUpdate:
    """Find the passages that the answer may rest on."""
    del runtime
    turn = running(state)
    turn.stage("searching", state.query)
    if not state.assistants and state.outcome != "empty":
        turn.note(outcome=state.outcome)
        return {}
    meant = _route(state).assistants or mentioned(turn.question, state.assistants)
    result = await search(
        turn,
        turn.prefetch or ports.knowledge,
        ports.limits,
        chosen=[assistant for assistant in meant if assistant in state.assistants],
        available=state.assistants,
    )
    turn.drop_prefetch()
    before = turn.record.get("assistants", [])  # the one that had no answer
    asked = [*before, *(assistant.name for assistant in result.asked)]
    # Nobody can tell that there is nothing while one of them was not reached.
    outcome = state.outcome if result.outcome == "empty" else result.outcome
    turn.note(
        assistants=asked,
        outcome=outcome,
        passages=[asdict(passage) for passage in result.passages],
    )
    describe_trace(
        assistants=asked,
        passages_found=len(result.passages),
        prefetch=turn.record.get("prefetch", "none"),
    )
    return {"passages": result.passages, "nearest": result.nearest, "outcome": outcome}


async def answer(state: ChatState, runtime: Runtime[Context], *, ports: Ports) -> ChatUpdate:
    """Stream the answer: from the passages, from the conversation, or that it has none."""
    turn = running(state)
    looked_up = _route(state).intent == "knowledge_base"
    if ports.tool_servers is not None:
        for name, reason in ports.tool_servers.missing.items():
            turn.degrade("tools", f"The tools of {name} cannot be used: {reason}.")
    turn.send_metadata()
    turn.stage("answering")
    if looked_up and state.outcome in {"unavailable", "forbidden"}:
        if choices_of(runtime).response_schema is not None:
            raise _not_asked(turn, state.outcome)
        # Said by us: a model that was told so might still answer from what it believes.
        message = say_notice(turn, pipeline_of(state, runtime, ports), state.outcome)
    else:
        request = await request_of(state, runtime, ports)
        message = await stream_answer(turn, ports, request)
    turn.finished = True
    turn.drop_head_start()
    describe_trace(
        model=turn.record.get("model"),
        degraded=turn.degraded_parts(),
        head_start=turn.record.get("head_start", "none"),
    )
    return {"messages": [message]}


async def save_turn(state: ChatState, runtime: Runtime[Context], *, ports: Ports) -> ChatUpdate:
    """Keep the turn, then close it."""
    turn = running(state)
    done = turn.kept_as("complete")
    is_kept = False
    try:
        if reason := await ports.history.save(turn.session, done):
            turn.degrade("history", reason)
        is_kept = True
    except HistoryError as error:
        turn.degrade("history", f"This turn could not be kept: {error.message}")
    turn.settled = True
    log_turn(turn, "complete", ports.statistics)
    await turn.let_go()
    turn.close()
    if is_kept:
        begin_summary(turn, done, ports, pipeline_of(state, runtime, ports))
    return {}


def _not_asked(turn: LiveTurn, outcome: Outcome) -> KnowledgeBaseError:
    """Return the error for an answer that may only be JSON and could not be looked up."""
    reasons = [entry["reason"] for entry in turn.record["degraded"]]
    kind: KnowledgeFailure = "forbidden" if outcome == "forbidden" else "unavailable"
    return KnowledgeBaseError(kind, " ".join(reasons) or "The knowledge base was not asked.")


def _route(state: ChatState) -> Route:
    if state.route is None:
        message = "no route: the route node runs first"
        raise RuntimeError(message)
    return state.route
