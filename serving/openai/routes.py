"""`/v1`: the bot for every program that speaks to OpenAI's models."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response
from fastapi.responses import JSONResponse

from chatbot.domain import Assistant
from serving.auth import Identity
from serving.http.errors import NotFoundError
from serving.http.running import RunningTurn
from serving.http.state import Bot
from serving.http.streaming import EventStream
from serving.http.turns import Turns, TurnStarter
from serving.http.users import Caller
from serving.openai.completion import Completion
from serving.openai.request import MODEL, Asked, CompletionRequest, asked

router = APIRouter(prefix="/v1", tags=["openai"])

SessionHeader = Annotated[
    str | None,
    Header(
        alias="X-Session-Id",
        max_length=200,
        description="A conversation that is kept here; the earlier messages are then ignored.",
    ),
]


@router.get("/models")
async def list_models(bot: Bot, caller: Caller) -> dict[str, Any]:
    """List the bot itself, and one model for each assistant that may be asked."""
    assistants = await bot.assistants(permitted=caller.assistants)
    names = [MODEL, *(_model_of(each) for each in assistants)]
    return {"object": "list", "data": [_described(name) for name in names]}


@router.get("/models/{name:path}")
async def read_model(name: str, bot: Bot, caller: Caller) -> dict[str, Any]:
    """Describe one of them."""
    await _assistants(name, bot, caller)
    return _described(name)


@router.post("/chat/completions")
async def complete(
    body: CompletionRequest,
    turns: TurnStarter,
    caller: Caller,
    session_id: SessionHeader = None,
) -> Response:
    """Answer the last message. The messages before it are the conversation."""
    question = asked(body)
    assistants = await _assistants(body.model, turns.bot, caller)
    turn = await _begin(question, turns, caller, assistants, session_id)
    completion = Completion(turn, body.model, plain=question.response_schema is not None)
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return EventStream(completion.chunks(with_usage=with_usage), at_end=turn.stop)
    try:
        return JSONResponse(await completion.whole())
    finally:
        turn.stop()


async def _begin(
    question: Asked,
    turns: Turns,
    caller: Identity,
    assistants: list[str] | None,
    session_id: str | None,
) -> RunningTurn:
    choices: dict[str, Any] = {
        "images": question.images or None,
        "assistants": assistants,
        "route": question.route,
        "instructions": question.instructions,
        "response_schema": question.response_schema,
        "model_parameters": question.model_parameters,
        "stop": question.stop,
    }
    if session_id is not None:
        return await turns.ask(caller, question.question, session_id=session_id, **choices)
    return await turns.reply(caller, question.question, question.earlier, **choices)


async def _assistants(model: str, bot: Bot, caller: Identity) -> list[str] | None:
    """Return the names of the assistants that the model means; nothing where it means all.

    Raises:
        NotFoundError: There is no such model.
    """
    if model == MODEL:
        return None
    for each in await bot.assistants(permitted=caller.assistants):
        if _model_of(each) == model:
            return [each.name]
    message = f"There is no model {model!r}. GET /v1/models lists those there are."
    raise NotFoundError(message)


def _model_of(assistant: Assistant) -> str:
    return f"{MODEL}/{assistant.name}"


def _described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}
