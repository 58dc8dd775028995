"""The model calls beside the answer: short, and never shown."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable

from chatbot.domain import ANONYMOUS
from chatbot.messages import text_of
from chatbot.models.finish_reasons import CUTTING
from chatbot.ports import Ports
from graphs.metering import Meter, metered
from graphs.prompt import NO_STREAM
from graphs.turn import LiveTurn

ChatRunnable = Runnable[Sequence[BaseMessage], AIMessageChunk]


def _aside(
    turn: LiveTurn, ports: Ports, name: str, tools: Sequence[dict[str, Any]] = ()
) -> ChatRunnable:
    """Return the model for a call of this name, which `router_seconds` limits.

    Of several endpoints a slow one is not waited for. The run's parameters and stop words are
    about the answer: here, a word at which the model stops would cut a decision.
    """
    model = ports.model
    if (within := getattr(model, "within", None)) is not None:
        model = within(ports.limits.router_seconds)
    bound = model.bind_tools(list(tools)) if tools else model
    named = bound.bind(**whose(turn)).with_config(tags=[NO_STREAM], run_name=name)
    return cast("ChatRunnable", named)


async def listen(
    turn: LiveTurn,
    ports: Ports,
    name: str,
    messages: Sequence[BaseMessage],
    tools: Sequence[dict[str, Any]] = (),
    **metadata: str,
) -> AsyncGenerator[AIMessageChunk]:
    """Yield what the model says in a call of this name, and note in the turn what it used.

    The metadata is for the trace.
    """
    meter = Meter(messages=messages, tools=tools, counts=ports.window is not None)
    model = _aside(turn, ports, name, tools).with_config(metadata=metadata)
    try:
        async with aclosing(metered(model.astream(messages), meter)) as chunks:
            async for chunk in chunks:
                yield chunk
    finally:
        turn.asides.note(meter, name)


async def whole_text(
    turn: LiveTurn, ports: Ports, name: str, messages: Sequence[BaseMessage], **metadata: str
) -> str:
    """Return what the model says, or "" if that was cut off: half of it would mislead."""
    said: list[str] = []
    cut = False
    async with aclosing(listen(turn, ports, name, messages, (), **metadata)) as chunks:
        async for chunk in chunks:
            said.append(text_of(chunk.content))
            cut = cut or chunk.response_metadata.get("finish_reason") in CUTTING
    return "" if cut else "".join(said)


def whose(turn: LiveTurn) -> dict[str, str]:
    """Return what tells an endpoint, in every call of the turn, whose it is."""
    user_id = turn.session.user_id
    return {} if user_id == ANONYMOUS else {"user": user_id}
