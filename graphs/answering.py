"""Streams the model's answer into the turn, and runs the tools that it calls."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable

from chatbot.citations import CitationFilter
from chatbot.domain import Passage
from chatbot.errors import ModelError
from chatbot.messages import MessagePipeline, Outcome, text_of, tool_call_message
from chatbot.models.tool_calls import ToolCall, ToolCallReader
from chatbot.queries import is_chinese
from chatbot.tools.toolbox import Toolbox
from graphs.turn import LiveTurn

ROUNDS = 5


async def stream_answer(
    turn: LiveTurn,
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    *,
    passages: Sequence[Passage] = (),
    toolbox: Toolbox | None = None,
) -> AIMessage:
    """Emit the answer as it comes, with checked citations, and return it as a message.

    Tools that the model calls are run and their results given back to it, for at most `ROUNDS`
    rounds; then it has to answer without them.

    Raises:
        ModelError: The model failed, or said nothing. What it had said is in the turn.
    """
    answering = _Answering(turn, passages)
    dialogue = list(messages)
    try:
        for _ in range(ROUNDS if toolbox and toolbox.tools else 0):
            offered = toolbox.tools if toolbox else ()
            calls = await answering.listen(model.bind_tools(offered), dialogue, toolbox)
            if not calls or toolbox is None:
                break
            answering.pause()
            dialogue += await _run(turn, toolbox, calls)
        else:
            await answering.listen(model, dialogue)
    finally:
        # Also of an answer that was stopped or broke, all that was said is kept.
        answering.finish()
    if not turn.answer.strip():
        message = "The model gave an empty answer. Please try again."
        raise ModelError("protocol", message)
    return turn.answer_message(answering.message_id)


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

    def __init__(self, turn: LiveTurn, passages: Sequence[Passage]) -> None:
        self.message_id: str | None = None
        self._turn = turn
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
                self.message_id = chunk.id or self.message_id
                if thought := chunk.additional_kwargs.get("reasoning_content"):
                    self._turn.send("reasoning", thought)
                self._turn.say(self._citations.feed(text_of(chunk.content)))
                self._facts |= {k: v for k, v in chunk.response_metadata.items() if v}
                if used := chunk.usage_metadata:
                    self._usage["input_tokens"] += used["input_tokens"]
                    self._usage["output_tokens"] += used["output_tokens"]
                if toolbox:
                    reader.feed(chunk)
        return reader.calls() if toolbox else []

    def pause(self) -> None:
        """Set what was said so far apart from what comes after the tools."""
        if self._turn.answer.strip():
            self._turn.say(self._citations.feed("\n\n"))

    def finish(self) -> None:
        """Emit what was held back and note how the answer came about."""
        self._turn.say(self._citations.finish())
        self._turn.note(
            citations=[citation.as_json() for citation in self._citations.cited],
            model=self._facts.get("model_name"),
            finish_reason=self._facts.get("finish_reason"),
            usage=self._usage if any(self._usage.values()) else dict.fromkeys(self._usage),
        )


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
