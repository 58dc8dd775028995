"""Begins a turn: checks what the run was given, takes the session, loads what was said."""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from chatbot.domain import LoadedHistory, Turn, in_force
from chatbot.errors import HistoryError, InputError
from chatbot.models.structured import StructuredOutput
from chatbot.ports import Ports
from graphs.images import take_images
from graphs.intake import (
    choices_of,
    chosen_of,
    images_of,
    question_of,
    session_of,
    turn_of,
)
from graphs.leasing import Lease
from graphs.state import ChatState, ChatUpdate, Context
from graphs.summing import since_summary
from graphs.tracing import describe_trace, thread_of
from graphs.turn import Emit, LiveTurn

# Set by whoever runs the graph from a checkpoint: what came after it no longer counts.
FROM_CHECKPOINT = "from_checkpoint"


def begin(state: ChatState, runtime: Runtime[Context], ports: Ports, *, emit: Emit) -> LiveTurn:
    """Return the turn that this run is; its id is the run's.

    Raises:
        InputError: The run was given something that cannot be used.
    """
    execution = runtime.execution_info
    turn_id = (execution and execution.run_id) or str(uuid.uuid4())
    choices = choices_of(runtime)
    question = question_of(state.messages, turn_id)
    ports.limits.check_question(question)
    turn = LiveTurn(
        session=session_of(runtime, ports.default_session_id),
        turn_id=turn_id,
        question=question,
        emit=emit,
        deadline=asyncio.get_running_loop().time() + ports.limits.turn_seconds,
    )
    session = turn.session
    if (replaces := choices.replaces) is not None:
        turn.note(replaces=replaces)
    if choices.response_schema is not None:
        StructuredOutput(choices.response_schema, ports.prompts)  # refused here if it is none
    thread_id = execution.thread_id if execution else None
    trace_id = describe_trace(**thread_of(session, thread_id))
    turn.note(
        trace_id=trace_id or None,
        thread_id=thread_id,
        message_id=next(m.id for m in reversed(state.messages) if turn_of(m) != turn_id),
    )
    if chosen := chosen_of(runtime):
        turn.note(choices=chosen)
    return turn


async def open_turn(
    turn: LiveTurn,
    state: ChatState,
    runtime: Runtime[Context],
    config: RunnableConfig,
    ports: Ports,
) -> ChatUpdate:
    """Take the session for the turn and return the history that its prompts are built from.

    A run that is executed again after its turn was completed gives the kept answer.

    Raises:
        BusyError: The session is answering another question.
        InputError: The turn is to replace one that does not exist.
    """
    if ports.leases is not None:
        lease = Lease(turn, ports.leases, ports.history, ports.statistics)
        turn.let_go = lease.end
        await lease.take(ports.queues, ports.limits.wait_seconds)
    turn.begun = True
    # Replaced turns do not count, so more are loaded than are shown.
    loaded = await _loaded(turn, ports, 2 * ports.limits.history_turns + 10)
    answers = [message for message in state.messages if turn_of(message) == turn.id]
    done = next((each for each in loaded.turns if each.id == turn.id), None)
    if done is not None and done.status == "complete":
        await turn.let_go()
        turn.settled = True
        turn.replay(done)
        return {"turn": turn, "messages": [] if answers else [turn.answer_message()]}
    others = [each for each in loaded.turns if each.id != turn.id]
    earlier = in_force(others)
    replaces = choices_of(runtime).replaces
    if replaces is None and config.get("configurable", {}).get(FROM_CHECKPOINT):
        replaces = _first_after(state.messages, earlier, turn)
    if replaces is not None:
        earlier = await _before(replaces, others, turn, ports)
    limit = ports.limits.history_turns
    summary, recent = since_summary(earlier)
    shown = recent[-limit:] if limit else []
    turn.out_of_sight = recent[: len(recent) - len(shown)]
    await take_images(images_of(state.messages, turn.id), shown, turn, ports)
    return {
        "turn": turn,
        "history": shown,
        "summary": summary,
        "messages": [RemoveMessage(id=str(message.id)) for message in answers],
    }


async def _loaded(turn: LiveTurn, ports: Ports, limit: int) -> LoadedHistory:
    try:
        loaded = await ports.history.load(turn.session, limit=limit)
    except HistoryError as error:
        turn.degrade("history", f"What was said before is missing: {error.message}")
        return LoadedHistory()
    if loaded.degraded:
        turn.degrade("history", loaded.degraded)
    return loaded


async def _before(
    turn_id: str, turns: Sequence[Turn], turn: LiveTurn, ports: Ports
) -> list[Turn]:
    """Return the turns that count before the one that is replaced."""
    if all(each.id != turn_id for each in turns) and (
        await ports.history.find(turn.session, turn_id) is None
    ):
        message = "There is no such turn in this conversation to replace."
        raise InputError(message)
    turn.note(replaces=turn_id)
    return in_force([*turns, replace(turn.kept_as("complete"), answer="its place")])[:-1]


def _first_after(
    messages: Sequence[AnyMessage], turns: Sequence[Turn], turn: LiveTurn
) -> str | None:
    """Return the first turn of this thread that came after the checkpoint.

    Those before it left their answer in the messages, or, broken off, at least their question.
    """
    answered = {turn_of(message) for message in messages}
    asked = {message.id for message in messages} - {turn.record["message_id"]}
    last = 0
    mine = [each for each in turns if each.record.get("thread_id") == turn.record["thread_id"]]
    for number, each in enumerate(mine, 1):
        if each.id in answered or each.record.get("message_id") in asked:
            last = number
    return mine[last].id if last < len(mine) else None
