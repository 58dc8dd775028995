"""What is told where no model answers."""

from langchain_core.messages import AIMessage

from chatbot.domain import Outcome
from chatbot.errors import ModelError
from chatbot.messages import MessagePipeline
from chatbot.queries import is_chinese
from graphs.turn import LiveTurn


def say_notice(turn: LiveTurn, pipeline: MessagePipeline, outcome: Outcome) -> AIMessage:
    """Say, in the language of the question, that not all of the knowledge was searched."""
    wanted = pipeline.language.casefold()
    chinese = (
        is_chinese(turn.question)
        if not wanted
        else wanted.startswith(("zh", "chinese")) or "中文" in wanted
    )
    ending = "zh" if chinese else "en"
    if parts := turn.record.get("not_searched"):
        names = ("、" if chinese else ", ").join(" ".join(part.split()) for part in parts)
        turn.say(pipeline.prompts.render(f"notice_incomplete.{ending}", parts=names))
    else:
        turn.say(pipeline.prompts.render(f"notice_{outcome}.{ending}"))
    turn.note(citations=[], finish_reason="stop")
    return turn.answer_message()


def nothing_said(finish_reason: str | None) -> ModelError:
    """Return why an answer came to its end without a word."""
    if finish_reason == "content_filter":
        message = "The model's content filter held the answer back. Please ask differently."
        return ModelError("content_filter", message)
    if finish_reason == "length":
        message = "The answer was cut off before its first word: the token limit is too low."
        return ModelError("bad_request", message)
    message = "The model gave an empty answer. Please try again."
    return ModelError("protocol", message)
