"""Runs each step of a turn before its deadline, and keeps the turn however the step ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from langgraph.runtime import Runtime

from chatbot.domain import TurnStatus
from chatbot.errors import ChatbotError, DeadlineError
from chatbot.events import error_data
from chatbot.ports import ChatHistory, Ports
from chatbot.statistics import Statistics
from graphs.state import ChatState, ChatUpdate, Context
from graphs.turn import LiveTurn

logger = logging.getLogger(__name__)
# Its level decides whether people's words are logged: DEBUG, which LOG_QUESTIONS sets.
questions = logging.getLogger("chatbot.questions")

SAVE_SECONDS = 5.0


class Node(Protocol):
    """A step of the graph with its ports bound."""

    def __call__(self, state: ChatState, runtime: Runtime[Context]) -> Awaitable[ChatUpdate]:
        """Return what the step changes."""
        ...


def kept(step: str, node: Node, ports: Ports) -> Callable[..., Awaitable[ChatUpdate]]:
    """Return the node such that a turn that is stopped or fails in it is kept and closed.

    The graph's last node does not run when a run is cancelled, so every node sees to it.
    """

    async def run(state: ChatState, runtime: Runtime[Context]) -> ChatUpdate:
        turn = state.turn
        if turn is None:  # the run begins anew, see `graphs.chat`
            return {}
        try:
            with turn.timed(step):
                return await _before_deadline(turn, node(state, runtime))
        except asyncio.CancelledError:
            await keep(ports, turn, "stopped")
            raise
        except Exception as error:
            known = as_known(error)
            if turn.finished:  # the answer is whole: what failed came after it
                await keep(ports, turn, "complete")
                turn.degrade("closing", known.message)
                turn.close()
                return {}
            turn.note(error={"code": known.code, "message": known.message, "step": step})
            await keep(ports, turn, "failed")
            turn.send("error", error_data(known, turn.answer))
            raise known from error

    return run


def running(state: ChatState) -> LiveTurn:
    """Return the turn in progress, which `load_history` began."""
    if state.turn is None:
        message = "no turn has begun: load_history runs first"
        raise RuntimeError(message)
    return state.turn


async def keep(ports: Ports, turn: LiveTurn, status: TurnStatus) -> None:
    """Save a turn that ended early; a complete answer stays complete.

    Goes on when it is cancelled again, for at most `SAVE_SECONDS`.
    """
    turn.drop_prefetch()
    status = "complete" if turn.finished else status
    saving = asyncio.ensure_future(_save(ports.history, turn, status))
    while not saving.done():
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            continue
    turn.settled = True
    if not saving.cancelled():
        log_turn(turn, status, ports.statistics)


async def _save(history: ChatHistory, turn: LiveTurn, status: TurnStatus) -> None:
    try:
        async with asyncio.timeout(SAVE_SECONDS):
            await history.save(turn.session, turn.kept_as(status))
    except Exception as error:  # noqa: BLE001 - whatever it is, the turn has to be closed
        logger.error("turn %s was not saved: %r", turn.id, error)  # noqa: TRY400 - told, not raised
    finally:
        await turn.let_go()


async def _before_deadline(turn: LiveTurn, work: Awaitable[ChatUpdate]) -> ChatUpdate:
    try:
        async with asyncio.timeout_at(turn.deadline) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        message = "The answer took too long. Please try again, or ask for less at once."
        raise DeadlineError(message) from None


def as_known(error: Exception) -> ChatbotError:
    """Return the error as one that may be shown; a fault of ours is logged and told plainly."""
    if isinstance(error, ChatbotError):
        return error
    logger.error("a step failed", exc_info=error)
    return ChatbotError("Something went wrong on our side. The log has the details.")


def log_turn(turn: LiveTurn, status: TurnStatus, statistics: Statistics) -> None:
    """Count the turn and tell its way in one line, without anybody's words."""
    statistics.count(turn.kept_as(status))
    record = turn.record
    facts: dict[str, Any] = {
        "turn_id": turn.id,
        "status": status,
        "intent": record.get("intent"),
        "reason": record.get("reason"),
        "assistants": record.get("assistants", []),
        "passages": len(record.get("passages", [])),
        "first_token_ms": record.get("first_token_ms"),
        "total_ms": turn.elapsed_ms(),
        "timings": record["timings"],
        "degraded": turn.degraded_parts(),
    }
    logger.info("turn ended", extra=facts)
    words = {"turn_id": turn.id, "question": turn.question, "query": record.get("query")}
    questions.debug("question of the turn", extra=words)
