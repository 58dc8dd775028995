"""Turns of before as a model sees them: questions, what tools gave, answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from chatbot.domain import Turn
from chatbot.images.image import without_images
from chatbot.prompts import Prompts

RESULT_CHARACTERS = 4_000  # of what a tool gave in an earlier turn
IMAGE = "[image]"  # stands in a prompt where an image was


def history_messages(
    prompts: Prompts,
    turns: Sequence[Turn],
    *,
    shorten: int | None = None,
    with_tools: bool = False,
    images: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> list[BaseMessage]:
    """Return the turns as pairs of a question and an answer.

    An unanswered turn gets a stand-in, so that no two messages of the user follow each other.
    `images` are shown with their turn's question; where others were, there is a note.
    """
    messages: list[BaseMessage] = []
    for turn in turns:
        answer = without_images(turn.answer, IMAGE)
        if not answer.strip():
            answer = prompts.render("unanswered")
        question, blocks = shortened(turn.question, shorten), (images or {}).get(turn.id, ())
        if turn.record.get("images") and not blocks:
            question = f"{question}\n{IMAGE}"
        messages.append(HumanMessage(with_images(question, blocks)))
        for number, used in enumerate(turn.record.get("tools", []) if with_tools else []):
            result = shortened(used["result"], RESULT_CHARACTERS)
            messages += tool_messages([(f"{turn.id}_{number}", {**used, "result": result})])
        messages.append(AIMessage(shortened(answer, shorten)))
    return messages


def tool_messages(
    used: Sequence[tuple[str, Mapping[str, Any]]], said: str = ""
) -> list[BaseMessage]:
    """Return one reply that calls tools, and their results, as the turn's record keeps them."""
    calls = [{"name": each["name"], "args": each["arguments"], "id": id_} for id_, each in used]
    return [
        AIMessage(said, tool_calls=calls),
        *(
            ToolMessage(
                each["result"],
                tool_call_id=id_,
                status="error" if each["failed"] else "success",
            )
            for id_, each in used
        ),
    ]


def fitting(turns: Sequence[Turn], characters: int) -> Sequence[Turn]:
    """Return the newest turns that together have at most `characters`; whole turns only."""
    kept = len(turns)
    left = characters
    while kept and (left := left - _size(turns[kept - 1])) >= 0:
        kept -= 1
    return turns[kept:]


def shortened(text: str, characters: int | None) -> str:
    """Return the text, without its middle where it is longer than `characters`."""
    if characters is None or len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]} … {text[-half:]}"


def with_images(
    text: str, images: Sequence[Mapping[str, Any]]
) -> str | list[str | dict[str, Any]]:
    """Return what a message holds: the text, and images as blocks behind it."""
    return [{"type": "text", "text": text}, *map(dict, images)] if images else text


def _size(turn: Turn) -> int:
    return len(turn.question) + len(turn.answer)
