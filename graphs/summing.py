"""Sums up what the model does not see any more, and keeps that with the session."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from chatbot.domain import Turn
from chatbot.errors import ModelError
from chatbot.messages import HISTORY_CHARACTERS, MessagePipeline, fitting, text_of
from chatbot.ports import Ports
from graphs.asides import aside
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


async def sum_up(turn: LiveTurn, ports: Ports, pipeline: MessagePipeline, cut: int) -> None:
    """Note a summary of the summary so far, of what was out of sight, and of the `cut` turns.

    One that fails changes nothing: the next turn tries again.
    """
    model = aside(turn, ports, "summarize")
    forgotten = fitting([*turn.out_of_sight, *pipeline.turns[:cut]], HISTORY_CHARACTERS)
    if not forgotten:
        return
    task = replace(pipeline, turns=forgotten, with_tools=False, earlier_images={})
    try:
        async with asyncio.timeout(ports.limits.router_seconds):
            stream = cast("Any", model.astream(task.for_summary()))
            async with aclosing(stream) as chunks:
                text = "".join([text_of(chunk.content) async for chunk in chunks]).strip()
    except (ModelError, TimeoutError) as error:
        logger.warning("the conversation was not summed up: %s", error)
        return
    if 0 < len(text) <= LONGEST_SUMMARY:
        turn.note(summary={"text": text, "until": task.turns[-1].id})
