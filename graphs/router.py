"""Lets the model decide, by one streamed tool call, how a question is handled."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from chatbot.domain import Assistant, Intent
from chatbot.earlier_turns import IMAGE
from chatbot.errors import ChatbotError, ModelError
from chatbot.messages import MessagePipeline
from chatbot.models.finish_reasons import CUTTING
from chatbot.models.tool_calls import ToolCall, ToolCallReader
from chatbot.ports import Ports
from chatbot.queries import usable_rewrite
from graphs.asides import listen, whole_text
from graphs.state import Route
from graphs.turn import LiveTurn

logger = logging.getLogger(__name__)

LOOK_UP = "knowledge_base"
CHAT = "general_chat"


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """What the model is to decide: on which question, and between which assistants.

    `forced` is the route, where the caller chose it. `looks_up` is called once the model has
    named the tool that looks something up, if it has yet to say where.
    """

    pipeline: MessagePipeline
    assistants: Sequence[Assistant]
    forced: Intent | None
    looks_up: Callable[[], None]


async def decide(turn: LiveTurn, ports: Ports, choice: Choice) -> Route:
    """Return how the question is handled; a router that fails yields the default route.

    A forced look-up still asks the model for the assistants and the standalone question, where
    there is something to choose or to resolve.
    """
    forced = choice.forced
    if forced is not None:
        reason = "the caller chose the route"
        simple = len(choice.assistants) <= 1 and not choice.pipeline.turns
        if forced == "general_chat" or simple:
            return Route(intent=forced, reason=reason)
    try:
        async with asyncio.timeout(ports.limits.router_seconds):
            route = await _ask(turn, ports, choice)
    except TimeoutError:
        failure = f"the router did not answer within {ports.limits.router_seconds:g} s"
        cause: ChatbotError | None = ModelError("timeout", failure)
    except ModelError as error:
        failure, cause = f"the router failed ({error.code})", error
    except Exception as error:  # noqa: BLE001 - a model of somebody else's raises what it likes
        logger.warning("the router failed: %r", error)
        failure = f"the router failed ({type(error).__name__})"
        cause = ChatbotError(failure)
    else:
        if isinstance(route, Route):
            return route
        failure, cause = route, None
    if forced is not None:
        return Route(intent=forced, reason=reason)
    turn.degrade("router", failure, cause)
    return Route(intent=ports.default_intent, reason=f"default route: {failure}")


async def rewrite(turn: LiveTurn, ports: Ports, pipeline: MessagePipeline) -> str:
    """Return the question as one that stands alone, or "" if the model gave none."""
    try:
        async with asyncio.timeout(ports.limits.router_seconds):
            text = await whole_text(turn, ports, "rewrite_question", pipeline.for_rewriting())
    except (ModelError, TimeoutError) as error:
        reason = "The question could not be put in context."
        cause = error if isinstance(error, ModelError) else ModelError("timeout", reason)
        turn.degrade("rewriting", reason, cause)
        return ""
    return usable_rewrite(turn.question, _without_note(text))


def tools(
    assistants: Sequence[Assistant], *, follow_up: bool, forced: Intent | None = None
) -> list[dict[str, Any]]:
    """Return the router's tools; `router.md` describes them to the model.

    A first question stands alone already, so `question` is asked for in a follow-up only.
    """
    names: dict[str, Any] = {"type": "string"}
    if assistants:
        names["enum"] = [assistant.name for assistant in assistants]
    arguments: dict[str, Any] = {"assistants": {"type": "array", "items": names}}
    if follow_up:
        arguments["question"] = {"type": "string"}
    look_up = _tool(LOOK_UP, arguments)
    return [look_up] if forced else [look_up, _tool(CHAT, {})]


def chosen(names: Sequence[object], assistants: Sequence[Assistant]) -> list[Assistant]:
    """Return the assistants that the names or ids mean, in that order, each once."""
    known = {a.id.casefold(): a for a in assistants}
    known |= {a.name.strip().casefold(): a for a in assistants}
    found = [known.get(name.strip().casefold()) for name in names if isinstance(name, str)]
    return list({a.id: a for a in found if a is not None}.values())


async def _ask(turn: LiveTurn, ports: Ports, choice: Choice) -> Route | str:
    """Return the model's decision, or why it gave none.

    The call is read as it streams: what comes after a decision that is complete is not waited
    for, so no answer hangs on the last words of a call. Without `route_early` it is.
    """
    pipeline, assistants, early = choice.pipeline, choice.assistants, ports.limits.route_early
    follow_up = bool(pipeline.turns) or not early
    offered = tools(assistants, follow_up=follow_up, forced=choice.forced)
    names = [tool["function"]["name"] for tool in offered]
    wanted = set(offered[0]["function"]["parameters"]["properties"])
    decided = getattr(ports.model, "decides", "the model called")
    reader, is_named = ToolCallReader(names), False
    asked = listen(turn, ports, "router", pipeline.for_router(assistants), offered)
    async with aclosing(asked) as chunks:
        async for chunk in chunks:
            reader.feed(chunk)
            if not early:
                continue
            arguments = reader.arguments_so_far
            complete = (reader.name == CHAT and CHAT in names) or (
                reader.name == LOOK_UP and wanted <= arguments.keys()
            )
            if complete and reader.name and reader.finish_reason not in CUTTING:
                call = ToolCall(name=reader.name, arguments=arguments)
                if reader.finish_reason is None:
                    turn.note(route_early="used")
                return _route(call, assistants, decided)
            if reader.name == LOOK_UP and not is_named:
                is_named = True
                choice.looks_up()
    found = next((call for call in reader.calls() if call.name in names), None)
    if found is None:
        cut = reader.finish_reason in CUTTING
        return "the router's call was cut off" if cut else "the model called no tool"
    return _route(found, assistants, decided)


def _route(call: ToolCall, assistants: Sequence[Assistant], decided: str) -> Route:
    reason = f"{decided} {call.name}"
    if call.name == CHAT:
        return Route(intent="general_chat", reason=reason)
    names = call.arguments.get("assistants")
    question = call.arguments.get("question")
    return Route(
        intent="knowledge_base",
        reason=f"{reason}, with unreadable arguments" if call.problem else reason,
        question=_without_note(question) if isinstance(question, str) else "",
        assistants=chosen(names if isinstance(names, list) else [names], assistants),
    )


def _without_note(text: str) -> str:
    """Return the text without the note that stands for an image: a search knows no images."""
    return text.replace(IMAGE, " ").strip()


def _tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}
