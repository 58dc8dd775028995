"""`POST /api/chat`: one question in, the events of its turn out."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from chatbot.domain import Intent, checked_id
from chatbot.errors import InputError
from graphs.intake import LONGEST_INSTRUCTIONS, LONGEST_NAME, MOST_ASSISTANTS, clean
from serving.http.following import followed
from serving.http.frames import Position
from serving.http.sessions import existing
from serving.http.streaming import EventStream
from serving.http.turns import TurnStarter
from serving.http.users import Caller

HEARTBEAT_SECONDS = 10.0
MOST_IMAGES = 100  # of which the settings allow fewer
LONGEST_QUESTION = 200_000  # QUESTION_CHARACTERS may set fewer
TIMEZONE = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,3}$"

STREAMED: dict[str, Any] = {
    "description": 'Server-sent events with an id, each `data: {"type", "data"}`.',
    "content": {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "data": {"type": "string"}},
                "required": ["id", "data"],
            }
        }
    },
}

OnDisconnect = Literal["stop", "continue"]
LastEventId = Annotated[str | None, Header(max_length=200)]

router = APIRouter(tags=["chat"])


def _asked(question: str) -> str:
    if not clean(question):
        message = "the question is empty"
        raise ValueError(message)
    return question


def _id(value: str) -> str:
    try:
        return checked_id(value, "id")
    except InputError as error:
        raise ValueError(error.message) from None


Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class ChatRequest(BaseModel):
    """A question and how to answer it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"question": "How many days of leave do I have?", "session_id": "s-1"}
        },
    )

    question: Annotated[str, Field(max_length=LONGEST_QUESTION), AfterValidator(_asked)]
    images: Annotated[list[str], Field(max_length=MOST_IMAGES)] | None = Field(
        None,
        description="Data URLs, https addresses of hosts that may be asked, or addresses of "
        "images that are kept already. `GET /api/images` tells what a question may have.",
    )
    session_id: Annotated[str, AfterValidator(_id)] | None = Field(
        None, description="The conversation that the question goes on with."
    )
    assistants: Annotated[list[Name], Field(max_length=MOST_ASSISTANTS)] | None = Field(
        None, description="The names of the assistants to ask; left out, they are chosen."
    )
    route: Intent | None = Field(None, description="Forces the route.")
    language: Name | None = Field(None, description='The language of the answer: "Chinese".')
    instructions: Annotated[str, Field(max_length=LONGEST_INSTRUCTIONS)] | None = Field(
        None, description="A persona, in words."
    )
    timezone: Annotated[str, Field(pattern=TIMEZONE, max_length=64)] | None = Field(
        None, description="The user's time zone, such as Asia/Shanghai."
    )
    replaces: Annotated[str, AfterValidator(_id)] | None = Field(
        None, description="The turn in whose place, and that of all after it, this one stands."
    )
    on_disconnect: OnDisconnect = Field(
        "stop", description="What happens to the answer when the connection is lost."
    )


@router.post(
    "/api/chat",
    response_class=StreamingResponse,
    responses={200: STREAMED},
)
async def chat(body: ChatRequest, turns: TurnStarter, caller: Caller) -> EventStream:
    """Answer one question as a stream of events."""
    turn = await turns.ask(
        caller,
        body.question,
        images=body.images,
        session_id=body.session_id,
        assistants=body.assistants,
        route=body.route,
        language=body.language,
        instructions=body.instructions,
        timezone=body.timezone,
        replaces=body.replaces,
    )
    return EventStream(
        turn.frames(heartbeat_seconds=HEARTBEAT_SECONDS),
        at_end=turn.stop if body.on_disconnect == "stop" else None,
    )


@router.get(
    "/api/sessions/{session_id}/events",
    response_class=StreamingResponse,
    responses={200: STREAMED, 204: {"description": "No answer is being written."}},
)
async def resume(
    session_id: str, turns: TurnStarter, caller: Caller, last_event_id: LastEventId = None
) -> Response:
    """Go on with the events of the answer that is being written in a conversation.

    After a broken connection `Last-Event-ID` names the last event that was received; without it
    the events come from the first. It does not matter which process writes the answer.
    """
    after = None if last_event_id is None else Position.read(last_event_id)
    here = turns.running.latest(caller.user_id, session_id)
    if here and (not here.task.done() if after is None else here.id == after.turn_id):
        sent = 0 if after is None else after.events
        return EventStream(here.frames(heartbeat_seconds=HEARTBEAT_SECONDS, after=sent))
    begun = await turns.bot.running(session_id, user_id=caller.user_id)
    if begun is None:
        await existing(turns.bot, session_id, caller.user_id)
        if after is None:
            return Response(status_code=204)
    after = after or Position(turn_id=begun.id if begun else "")
    return EventStream(followed(turns.bot, caller, session_id, begun, after))
