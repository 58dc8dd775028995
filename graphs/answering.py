"""Streams the model's answer into the turn, and runs the tools that it calls."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable

from chatbot.citations import CitationFilter
from chatbot.domain import Passage
from chatbot.errors import ModelError
from chatbot.messages import MessagePipeline, Outcome, text_of, tool_call_message
from chatbot.models.structured import StructuredOutput
from chatbot.models.tool_calls import ToolCall, ToolCallReader
from chatbot.ports import Ports
from chatbot.queries import is_chinese
from chatbot.tools.toolbox import Toolbox
from graphs.fitting import FittedTask, Task, fit
from graphs.images import image_markdown
from graphs.turn import LiveTurn

ROUNDS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What an answer is to be made from, and how.

    `schema` asks for JSON that fits it; `options` go to the endpoint as they are.
    """

    task: Task
    toolbox: Toolbox
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


async def stream_answer(turn: LiveTurn, ports: Ports, request: Request) -> AIMessage:
    """Emit the answer as it comes, with checked citations, and return it as a message.

    Where the endpoint says that the prompt is too long after all, it is made shorter once.

    Raises:
        ModelError: The model failed, or said nothing. What it had said is in the turn.
        InputError: The schema cannot be used.
    """
    fitted = await fit(request.task, ports.window, request.toolbox)
    try:
        return await _answer(turn, ports, request, fitted)
    except ModelError as error:
        used_tools = "tools" in turn.record  # they may not run a second time
        if error.kind != "context_too_long" or turn.answer or used_tools or not ports.window:
            raise
        smaller = await fit(request.task, ports.window.smaller(), request.toolbox)
        return await _answer(turn, ports, request, smaller)


async def _answer(
    turn: LiveTurn, ports: Ports, request: Request, fitted: FittedTask
) -> AIMessage:
    if fitted.turns_cut or fitted.passages_cut:
        turn.note(cut={"turns": fitted.turns_cut, "passages": fitted.passages_cut})
    answering = _Answering(turn, ports, () if request.schema else fitted.task.passages)
    messages = fitted.task.messages()
    try:
        if request.schema is not None:
            await _fill_schema(answering, ports, request, messages)
        else:
            await _converse(answering, ports.model, request, messages)
    finally:
        # Also of an answer that was stopped or broke, all that was said is kept.
        answering.finish()
    if not turn.answer.strip():
        raise _nothing_said(turn.record["finish_reason"])
    return turn.answer_message(answering.message_id)


def _nothing_said(finish_reason: str | None) -> ModelError:
    """Return why an answer came to its end without a word."""
    if finish_reason == "content_filter":
        message = "The model's content filter held the answer back. Please ask differently."
        return ModelError("content_filter", message)
    if finish_reason == "length":
        message = "The answer was cut off before its first word: the token limit is too low."
        return ModelError("bad_request", message)
    message = "The model gave an empty answer. Please try again."
    return ModelError("protocol", message)


async def _converse(
    answering: "_Answering",
    model: BaseChatModel,
    request: Request,
    messages: list[BaseMessage],
) -> None:
    """Let the model answer; run the tools that it calls and give the results back to it.

    After `ROUNDS` rounds it has to answer without tools.
    """
    toolbox = request.toolbox
    for _ in range(ROUNDS if toolbox.tools else 0):
        bound = model.bind_tools(toolbox.tools).bind(**request.options)
        calls = await answering.listen(bound, messages, toolbox)
        if not calls:
            return
        answering.pause()
        messages = [*messages, *await _run(answering.turn, toolbox, calls)]
    await answering.listen(model.bind(**request.options), messages)


async def _fill_schema(
    answering: "_Answering",
    ports: Ports,
    request: Request,
    messages: Sequence[BaseMessage],
) -> None:
    """Ask for JSON that fits the schema; nothing is said before it does."""
    if ports.window is None:
        message = "Structured answers need a language model. Set LLM_MODEL and its key."
        raise ModelError("unsupported", message)
    structured = StructuredOutput(request.schema or {}, ports.prompts)
    model = ports.model.bind(**request.options).with_config(run_name="answer")
    found = await structured.ask(
        cast("Any", model), messages, on_chunk=answering.note_without_text
    )
    answering.turn.note(structured=found.value)
    answering.turn.say(json.dumps(found.value, ensure_ascii=False))


def say_notice(turn: LiveTurn, pipeline: MessagePipeline, outcome: Outcome) -> AIMessage:
    """Say, in the language of the question, that the knowledge base could not be asked."""
    wanted = pipeline.language.casefold()
    chinese = (
        is_chinese(turn.question)
        if not wanted
        else wanted.startswith(("zh", "chinese")) or "中文" in wanted
    )
    turn.say(pipeline.prompts.render(f"notice_{outcome}.{'zh' if chinese else 'en'}"))
    turn.note(citations=[], finish_reason="stop")
    return turn.answer_message()


class _Answering:
    """What the model says, over all the rounds of one answer."""

    def __init__(self, turn: LiveTurn, ports: Ports, passages: Sequence[Passage]) -> None:
        self.turn = turn
        self.message_id: str | None = None
        self._ports = ports
        self._citations = CitationFilter(passages)
        self._facts: dict[str, Any] = {}
        self._usage = {"input_tokens": 0, "output_tokens": 0}

    async def listen(
        self,
        model: Runnable[Any, Any],
        messages: Sequence[BaseMessage],
        toolbox: Toolbox | None = None,
    ) -> Sequence[ToolCall]:
        """Emit one reply of the model and return the tools that it calls."""
        reader = ToolCallReader(list(toolbox.schemas) if toolbox else [])
        stream = model.with_config(run_name="answer").astream(messages)
        async with aclosing(cast("Any", stream)) as chunks:
            async for chunk in cast("AsyncIterator[AIMessageChunk]", chunks):
                self.note_without_text(chunk)
                self.turn.say(self._citations.feed(text_of(chunk.content)))
                for url in chunk.additional_kwargs.get("images", ()):
                    await self._show_image(url)
                if toolbox:
                    reader.feed(chunk)
        return reader.calls() if toolbox else []

    def note_without_text(self, chunk: AIMessageChunk) -> None:
        """Take all that a chunk tells but its text."""
        self.message_id = chunk.id or self.message_id
        if thought := chunk.additional_kwargs.get("reasoning_content"):
            self.turn.send("reasoning", thought)
        self._facts |= {k: v for k, v in chunk.response_metadata.items() if v}
        if used := chunk.usage_metadata:
            self._usage["input_tokens"] += used["input_tokens"]
            self._usage["output_tokens"] += used["output_tokens"]

    def pause(self) -> None:
        """Set what was said so far apart from what comes after the tools."""
        if self.turn.answer.strip():
            self.turn.say(self._citations.feed("\n\n"))

    def finish(self) -> None:
        """Emit what was held back and note how the answer came about."""
        self.turn.say(self._citations.finish())
        used = any(self._usage.values())
        self.turn.note(
            citations=[citation.as_json() for citation in self._citations.cited],
            model=self._facts.get("model_name"),
            endpoint=self._facts.get("endpoint"),
            attempts=self._facts.get("attempts") or [],
            finish_reason=self._facts.get("finish_reason"),
            usage={
                **(self._usage if used else dict.fromkeys(self._usage)),
                "estimated": bool(self._facts.get("usage_estimated")),
            },
        )

    async def _show_image(self, url: str) -> None:
        if markdown := await image_markdown(url, self.turn, self._ports):
            self.turn.say(self._citations.feed(f"\n\n{markdown}\n\n"))


async def _run(
    turn: LiveTurn, toolbox: Toolbox, calls: Sequence[ToolCall]
) -> Sequence[BaseMessage]:
    """Run the calls one after the other and return them with their results, for the model."""
    messages: list[BaseMessage] = []
    for number, call in enumerate(calls):
        turn.stage("tool", call.name)
        with turn.timed(f"tool {call.name}"):
            result = await toolbox.run(call)
        turn.record.setdefault("tools", []).append(result.as_json())
        call_id = call.id or f"call_{len(turn.record['tools'])}_{number}"
        messages += tool_call_message(call_id, result.as_json())
    return messages
