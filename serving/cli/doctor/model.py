"""Examines each endpoint of the model with short calls, one for each thing it shall do."""

import asyncio
import time
from collections.abc import Awaitable

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langsmith import tracing_context

from chatbot.errors import ChatbotError
from chatbot.images.blocks import block_of
from chatbot.models.context_window import UNKNOWN_WINDOW, window_of
from chatbot.models.endpoints import Endpoint, ModelChoice
from chatbot.models.rotation import REASONS, EndpointState
from chatbot.models.selection import open_model, select_model
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note

PART = "model"
QUESTION = "Reply with the single word OK."
TOOL_QUESTION = "Call the tool `note` with the word OK."
TOOL = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Notes a word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
}
IMAGE_QUESTION = "Which colour is this image? Reply with one word."
# A red square of 32 × 32 pixels: some models take nothing smaller.
IMAGE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lT"
    "CQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)
RED = ("red", "红", "紅")


async def examine_model(settings: Settings, note: Note) -> None:
    """Ask every endpoint for a word, for a tool call and about an image, as far as it can."""
    choice = await asyncio.to_thread(select_model, settings)
    if choice is None:
        detail = "No model is set: answers quote the documents word by word."
        advice = "Set LLM_MODEL and DASHSCOPE_API_KEY, or OPENAI_API_KEY / OPENAI_BASE_URL."
        note(Finding(PART, "off", detail, advice))
        return
    # Not traced: these are no turns of anybody.
    with tracing_context(enabled=False):
        await asyncio.gather(*(_examine(each, settings, note) for each in choice.endpoints))


async def _examine(endpoint: Endpoint, settings: Settings, note: Note) -> None:
    name = endpoint.name
    try:
        async with open_model(ModelChoice(endpoints=(endpoint,)), settings) as model:
            calls = [_noted(_stream(model, name), f"{name}: a short answer", name, note)]
            if endpoint.tools:
                calls.append(
                    _noted(_call_tool(model, name), f"{name}: a tool call", name, note)
                )
            if endpoint.vision:
                calls.append(_noted(_look(model, name), f"{name}: an image", name, note))
            await asyncio.gather(*calls)
            state = model.states()[0]
            note(_state(state))
            if state.state == "ready":
                note(_window(endpoint))
            if not endpoint.tools:
                detail = (
                    f"{name}: is set to call no tools: ROUTE_DEFAULT decides where to look."
                )
                note(Finding(PART, "off", detail))
    except ChatbotError as error:
        note(_failure(name, error))


async def _noted(examination: Awaitable[Finding], what: str, name: str, note: Note) -> None:
    try:
        note(await examination)
    except ChatbotError as error:
        note(_failure(name, error))
    except asyncio.CancelledError:
        advice = "It is slow or does not answer: try again, or check its address."
        note(Finding(PART, "fail", f"{what} was not there in time.", advice))
        raise


def _state(state: EndpointState) -> Finding:
    """Return how the endpoint does after both calls, as `/health` tells it of a server."""
    where = f" at {state.address}" if state.address else ""
    known = f"{state.name}: {state.model}{where} is {state.state}"
    if state.state == "ready":
        return Finding(PART, "ok", f"{known}.")
    why = REASONS[state.error] if state.error else ""
    detail = f"{known}, {state.seconds:.0f} s left: {why}."
    return Finding(PART, "fail", detail, "A server asks it again after that time by itself.")


async def _stream(model: BaseChatModel, name: str) -> Finding:
    began = time.perf_counter()
    first: float | None = None
    whole: AIMessageChunk | None = None
    async for chunk in model.astream(QUESTION):
        if first is None:
            first = time.perf_counter() - began
        whole = chunk if whole is None else whole + chunk
    if first is None or whole is None or not whole.text.strip():
        return Finding(PART, "fail", f"{name}: the answer was empty.", "Try another model.")
    reasons = " It reasons first." if whole.additional_kwargs.get("reasoning_content") else ""
    detail = f"{name}: streams, first token after {first * 1000:.0f} ms.{reasons}"
    estimated = whole.response_metadata.get("usage_estimated", False)
    if estimated or whole.usage_metadata is None:
        advice = "Tokens are estimated then; the server may have an option to report them."
        return Finding(PART, "warn", f"{detail} It reports no usage.", advice)
    return Finding(PART, "ok", detail)


async def _call_tool(model: BaseChatModel, name: str) -> Finding:
    message = await model.bind_tools([TOOL]).ainvoke(TOOL_QUESTION)
    if any(call["name"] == "note" for call in message.tool_calls):
        return Finding(PART, "ok", f"{name}: calls tools, so it can choose where to look.")
    advice = "Use a model with tool calling; until then ROUTE_DEFAULT decides every question."
    return Finding(PART, "fail", f"{name}: did not call the tool it was given.", advice)


async def _look(model: BaseChatModel, name: str) -> Finding:
    question = HumanMessage([{"type": "text", "text": IMAGE_QUESTION}, block_of(IMAGE)])
    said = (await model.ainvoke([question])).text.casefold()
    if any(word in said for word in RED):
        return Finding(PART, "ok", f"{name}: reads images.")
    advice = "If it does not read images, set vision = false for it in MODELS_FILE."
    return Finding(PART, "warn", f"{name}: did not see that an image is red.", advice)


def _window(endpoint: Endpoint) -> Finding:
    tokens = endpoint.context_window or window_of(endpoint.model)
    detail = f"{endpoint.name}: reads up to {tokens:,} tokens at once"
    if endpoint.context_window is not None:
        return Finding(PART, "ok", f"{detail}, as it is set.")
    if tokens == UNKNOWN_WINDOW:
        advice = "Set CONTEXT_WINDOW, or context_window in MODELS_FILE, to what it can read."
        return Finding(PART, "ok", f"{detail}: a guess, as the model is not known.", advice)
    return Finding(PART, "ok", f"{detail}, by its name.")


def _failure(name: str, error: ChatbotError) -> Finding:
    advice = "Check LLM_MODEL, and the address and key of the endpoint (or MODELS_FILE)."
    return Finding(PART, "fail", f"{name}: {error.in_full}", advice)
