"""Sums up what the model does not see any more, and keeps that with the session."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from chatbot.domain import Turn, in_force
from chatbot.earlier_turns import shortened
from chatbot.errors import ChatbotError
from chatbot.messages import HISTORY_CHARACTERS, MessagePipeline
from chatbot.ports import Ports
from graphs.asides import whole_text
from graphs.turn import LiveTurn

logger = logging.getLogger(__name__)

LONGEST_SUMMARY = 4_000


def since_summary(turns: Sequence[Turn]) -> tuple[str, list[Turn]]:
    """Return the newest summary that a turn keeps, or "", and the turns that it leaves out."""
    for turn in reversed(turns):
        if kept := turn.record.get("summary"):
            ids = [each.id for each in turns]
            start = ids.index(kept["until"]) + 1 if kept["until"] in ids else 0
            return str(kept["text"]), list(turns[start:])
    return "", list(turns)


def begin_summary(turn: LiveTurn, done: Turn, ports: Ports, pipeline: MessagePipeline) -> None:
    """Begin to sum up, behind the turn that is done, what it did not see any more.

    A summary that fails changes nothing: the next turn tries again.
    """
    cut: int = done.record.get("cut", {}).get("turns", 0)
    unseen = {each.id for each in (*turn.out_of_sight, *pipeline.turns[:cut])}
    if ports.limits.summarize and unseen:
        work = partial(_sum_up, turn, done, ports, pipeline, unseen)
        ports.background.start(f"summary of {turn.session.key}", work)


async def _sum_up(
    turn: LiveTurn,
    done: Turn,
    ports: Ports,
    pipeline: MessagePipeline,
    unseen: Collection[str],
) -> None:
    try:
        async with asyncio.timeout(ports.limits.router_seconds):
            # Read anew: the summary of an earlier turn may have come meanwhile.
            loaded = await ports.history.load(turn.session, limit=_loaded(ports))
            summary, recent = since_summary(in_force(loaded.turns))
            turns = _oldest([each for each in recent if each.id in unseen], ports)
            if not turns:
                return
            task = replace(
                pipeline, turns=turns, summary=summary, with_tools=False, earlier_images={}
            )
            text = await _ask(turn, ports, task)
            if 0 < len(text) <= LONGEST_SUMMARY:
                found = {"text": text, "until": turns[-1].id}
                usage = turn.asides.added_to_usage(done.record.get("usage"))
                record = {**done.record, "summary": found, "usage": usage}
                await ports.history.save(turn.session, replace(done, record=record))
    except (ChatbotError, TimeoutError) as error:
        logger.warning("the conversation was not summed up: %r", error)


async def _ask(turn: LiveTurn, ports: Ports, task: MessagePipeline) -> str:
    whose = {"session_id": turn.session.session_id, "user_id": turn.session.user_id}
    text = await whole_text(turn, ports, "summarize", task.for_summary(), **whose)
    return text.strip()


def _loaded(ports: Ports) -> int:
    """Return how many turns to read: all that the turn had read, and some since."""
    return 2 * ports.limits.history_turns + 20


def _oldest(turns: Sequence[Turn], ports: Ports) -> list[Turn]:
    """Return the oldest of the turns, as many as a prompt holds, long ones without middle.

    Those that are left are summed up behind the next turn.
    """
    left = HISTORY_CHARACTERS
    if ports.window is not None:  # a character has about one token at most
        left = min(left, ports.window.budget // 2)
    kept: list[Turn] = []
    for turn in turns:
        short = replace(
            turn,
            question=shortened(turn.question, left // 4),
            answer=shortened(turn.answer, left // 4),
        )
        if kept and len(short.question) + len(short.answer) > left:
            break
        left -= len(short.question) + len(short.answer)
        kept.append(short)
    return kept
