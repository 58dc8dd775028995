"""Runs each step of a turn before its deadline, and keeps the turn however the step ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from langgraph.runtime import Runtime

from chatbot.domain import TurnStatus
from chatbot.errors import ChatbotError, StoppedError
from chatbot.events import error_data
from chatbot.ports import ChatHistory, Ports
from chatbot.statistics import Statistics
from graphs.state import ChatState, ChatUpdate, Context
from graphs.tracing import describe_turn
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
                return await turn.before_deadline(node(state, runtime))
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
            if not isinstance(known, StoppedError):
                turn.note(error={"code": known.code, "message": known.message, "step": step})
            await keep(ports, turn, "stopped" if turn.broken_off else "failed")
            if isinstance(known, StoppedError):
                turn.close("stopped")
            else:
                if citations := turn.record.get("citations"):  # of what was said so far
                    turn.send("citations", citations)
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

    Goes on when it is cancelled again, for at most `SAVE_SECONDS`. Of a turn that never got
    its session nothing is kept: the turns there stay in order. One that is kept already is
    neither saved nor counted again.
    """
    if turn.settled or not turn.begun:
        await dismiss(turn)
        return
    turn.drop_guesses()
    status = "complete" if turn.finished else status
    await _uninterrupted(_save(ports.history, turn, status))
    turn.settled = True
    log_turn(turn, status, ports.statistics)


async def dismiss(turn: LiveTurn) -> None:
    """End a turn of which nothing is to be kept."""
    turn.settled = True
    await _uninterrupted(turn.let_go())


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Do it to its end, also when whoever waits for it is cancelled, and again."""
    doing = asyncio.ensure_future(work)
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            continue


async def _save(history: ChatHistory, turn: LiveTurn, status: TurnStatus) -> None:
    try:
        async with asyncio.timeout(SAVE_SECONDS):
            await history.save(turn.session, turn.kept_as(status))
    except Exception as error:  # noqa: BLE001 - whatever it is, the turn has to be closed
        logger.error("turn %s was not saved: %r", turn.id, error)  # noqa: TRY400 - told, not raised
    finally:
        await turn.let_go()


def as_known(error: Exception) -> ChatbotError:
    """Return the error as one that may be shown; a fault of ours is logged and told plainly."""
    if isinstance(error, ChatbotError):
        return error
    logger.error("a step failed", exc_info=error)
    return ChatbotError("Something went wrong on our side. The log has the details.")


def log_turn(turn: LiveTurn, status: TurnStatus, statistics: Statistics) -> None:
    """Count the turn and tell its way in one line, without anybody's words."""
    statistics.count(turn.kept_as(status))
    describe_turn(turn.kept_as(status))
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
