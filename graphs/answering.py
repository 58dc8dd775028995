"""Streams the model's answer into the turn."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from chatbot.citations import CitationFilter
from chatbot.domain import Passage
from chatbot.errors import ModelError
from chatbot.messages import MessagePipeline, Outcome, text_of
from chatbot.queries import is_chinese
from graphs.turn import LiveTurn


async def stream_answer(
    turn: LiveTurn,
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    passages: Sequence[Passage],
) -> AIMessage:
    """Emit the answer as it comes, with checked citations, and return it as a message.

    Raises:
        ModelError: The model failed, or said nothing. What it had said is in the turn.
    """
    citations = CitationFilter(passages)
    facts: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    message_id: str | None = None
    stream = model.with_config(run_name="answer").astream(messages)
    try:
        async with aclosing(cast("Any", stream)) as chunks:
            chunk: AIMessageChunk
            async for chunk in chunks:
                message_id = message_id or chunk.id
                if thought := chunk.additional_kwargs.get("reasoning_content"):
                    turn.send("reasoning", thought)
                turn.say(citations.feed(text_of(chunk.content)))
                facts |= {k: v for k, v in chunk.response_metadata.items() if v}
                usage |= {k: v for k, v in (chunk.usage_metadata or {}).items() if v}
    finally:
        # Also of an answer that was stopped or broke, all that was said is kept.
        turn.say(citations.finish())
        turn.note(
            citations=[citation.as_json() for citation in citations.cited],
            model=facts.get("model_name"),
            finish_reason=facts.get("finish_reason"),
            usage={name: usage.get(name) for name in ("input_tokens", "output_tokens")},
        )
    if not turn.answer.strip():
        message = "The model gave an empty answer. Please try again."
        raise ModelError("protocol", message)
    return AIMessage(content=turn.answer, id=message_id)


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
    return AIMessage(content=turn.answer, id=f"{turn.id}-answer")
