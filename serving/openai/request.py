"""What a client of the OpenAI API asks for, and what that means here."""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from chatbot.domain import Intent, Turn
from chatbot.errors import InputError
from chatbot.messages import text_of
from serving.openai.sources import without_sources

MODEL = "chatbot"
MOST_MESSAGES = 2_000
PARAMETERS = (
    "frequency_penalty",
    "logit_bias",
    "presence_penalty",
    "seed",
    "temperature",
    "top_p",
)
# How Open WebUI begins what it asks for itself: titles, tags, further questions.
_TASK = re.compile(r"\s*### Task:", re.IGNORECASE)


class Message(BaseModel):
    """A message. What else clients put into it means nothing here."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class JsonSchema(BaseModel):
    """A schema with a name."""

    model_config = ConfigDict(extra="ignore")

    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class ResponseFormat(BaseModel):
    """The form of the answer."""

    model_config = ConfigDict(extra="ignore")

    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: JsonSchema | None = None


class StreamOptions(BaseModel):
    """What a stream has beside the answer."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """A chat completion. Fields that mean nothing here are ignored, as clients send many."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "example": {
                "model": MODEL,
                "messages": [{"role": "user", "content": "Who wrote Walden?"}],
            }
        },
    )

    model: Annotated[str, Field(max_length=300)] = MODEL
    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    seed: int | None = None
    logit_bias: dict[str, float] | None = None
    stop: str | list[str] | None = None
    response_format: ResponseFormat | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    functions: list[Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, the turns before it, and how to answer it."""

    question: str
    images: Sequence[str]
    earlier: Sequence[Turn]
    instructions: str | None
    route: Intent | None
    response_schema: Mapping[str, Any] | None
    model_parameters: Mapping[str, Any] | None
    stop: Sequence[str] | None


def asked(request: CompletionRequest) -> Asked:
    """Return what the request asks.

    Raises:
        InputError: It asks for something that the bot does not do.
    """
    if request.tools or request.functions or request.tool_choice not in (None, "none", "auto"):
        message = "Tools are not taken: the bot has its own. Leave tools and tool_choice out."
        raise InputError(message)
    if request.n not in {None, 1}:
        message = "n must be 1: a question has one answer."
        raise InputError(message)
    if any(message.role in {"tool", "function"} for message in request.messages):
        message = "Messages of the role tool are not taken: the bot has its own tools."
        raise InputError(message)
    last = request.messages[-1]
    question = text_of(last.content or "").strip()
    if last.role != "user" or not question:
        message = "The last message must be the user's question."
        raise InputError(message)
    instructions = "\n\n".join(
        text_of(message.content or "")
        for message in request.messages
        if message.role in {"system", "developer"}
    )
    return Asked(
        question=question,
        images=list(_images(last.content)),
        earlier=_turns(request.messages[:-1]),
        instructions=instructions or None,
        route="general_chat" if _TASK.match(question) else None,
        response_schema=_schema(request.response_format),
        model_parameters=_parameters(request),
        stop=[request.stop] if isinstance(request.stop, str) else request.stop,
    )


def _turns(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns that the messages tell of.

    Questions without an answer between them are one; an answer without a question is left out,
    as a greeting is that a client shows before anybody has asked.
    """
    turns: list[Turn] = []
    question: list[str] = []
    for message in messages:
        text = text_of(message.content or "").strip()
        if message.role == "user":
            question.append(text)
        elif message.role == "assistant" and question:
            turns.append(_turn("\n\n".join(question), without_sources(text)))
            question = []
    if question:
        turns.append(_turn("\n\n".join(question), ""))
    return turns


def _turn(question: str, answer: str) -> Turn:
    return Turn(
        id=str(uuid.uuid4()),
        question=question,
        answer=answer,
        status="complete" if answer else "stopped",
        started_at=datetime.now(UTC),
        record={},
    )


def _images(content: str | Sequence[Mapping[str, Any]] | None) -> Sequence[str]:
    if content is None or isinstance(content, str):
        return []
    found = [part.get("image_url") for part in content if part.get("type") == "image_url"]
    addresses = [each.get("url") if isinstance(each, dict) else each for each in found]
    return [address for address in addresses if isinstance(address, str)]


def _schema(form: ResponseFormat | None) -> Mapping[str, Any] | None:
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return {"type": "object"}
    if form.json_schema is None:
        message = "response_format of the type json_schema needs a json_schema."
        raise InputError(message)
    return form.json_schema.schema_


def _parameters(request: CompletionRequest) -> Mapping[str, Any] | None:
    given = {name: getattr(request, name) for name in PARAMETERS}
    given["max_tokens"] = request.max_completion_tokens or request.max_tokens
    return {name: value for name, value in given.items() if value is not None} or None
