"""Follows a turn that another process is answering, by what its lease says of it."""

import asyncio
from collections.abc import AsyncGenerator

from chatbot.domain import Turn
from chatbot.errors import HistoryError, InputError
from chatbot.events import closing_events, metadata_of
from graphs import Chatbot
from serving.auth import Identity
from serving.http.frames import HEARTBEAT, Position, frame

POLL_SECONDS = 1.0  # as often as a lease is renewed
LOST_SECONDS = 15.0  # a lease expires and is swept in less


async def followed(
    bot: Chatbot, caller: Identity, session_id: str, begun: Turn | None, after: Position
) -> AsyncGenerator[bytes, None]:
    """Yield what is new of the turn that `after` names, as server-sent events, to its end.

    `begun` is the turn as its lease has it, if it runs. Of a turn that was lost with its
    process nothing more is known than that it ended.
    """
    sent = after
    user_id = caller.user_id
    running = begun
    if running is not None and not after.events:
        sent = Position(turn_id=running.id, events=1)
        yield frame({"type": "metadata", "data": metadata_of(session_id, running)}, sent)
    unseen = 0.0
    while True:
        if running is not None and running.id == after.turn_id:
            unseen = 0.0
            more, sent = _more_of(running.answer, sent)
            yield more or HEARTBEAT
        else:
            kept = await _kept(bot, session_id, after.turn_id, user_id)
            if kept is not None or unseen > LOST_SECONDS:
                for piece in _ending(kept, sent, session_id):
                    yield piece
                return
            unseen += POLL_SECONDS
            yield HEARTBEAT
        await asyncio.sleep(POLL_SECONDS)
        running = await bot.running(session_id, user_id=user_id)


async def _kept(bot: Chatbot, session_id: str, turn_id: str, user_id: str) -> Turn | None:
    try:
        return await bot.turn(session_id, turn_id, user_id=user_id)
    except (InputError, HistoryError):  # it may be there a moment later
        return None


def _more_of(answer: str, sent: Position) -> tuple[bytes, Position]:
    """Return the rest of the answer as an event, if there is any, and what was sent then."""
    rest = answer[sent.characters :]
    if not rest:
        return b"", sent
    now = Position(
        turn_id=sent.turn_id, events=sent.events + 1, characters=sent.characters + len(rest)
    )
    return frame({"type": "content", "data": rest}, now), now


def _ending(turn: Turn | None, sent: Position, session_id: str) -> list[bytes]:
    """Return the events that end the turn as it was kept."""
    if turn is None:
        message = "The answer was lost: the process that wrote it ended. Please ask again."
        data = {"code": "interrupted", "message": message, "retryable": True}
        return [frame({"type": "error", "data": {**data, "retry_after": None}}, sent)]
    rest, now = _more_of(turn.answer, sent)
    return [rest, *(frame(event, now) for event in closing_events(session_id, turn))]
