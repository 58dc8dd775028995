"""`POST /api/chat`: one question in, the events of its turn out."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from chatbot.domain import Intent, checked_id
from chatbot.errors import InputError
from graphs.intake import LONGEST_INSTRUCTIONS, LONGEST_NAME, MOST_ASSISTANTS, clean
from serving.http.running import RunningTurn
from serving.http.turns import TurnStarter
from serving.http.users import Caller

HEARTBEAT_SECONDS = 10.0
MOST_IMAGES = 100  # of which the settings allow fewer
LONGEST_QUESTION = 200_000  # QUESTION_CHARACTERS may set fewer
TIMEZONE = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z][A-Za-z0-9_+-]*){0,3}$"

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


class EventStream(StreamingResponse):
    """The events of a turn as they come. When the client leaves, the turn is stopped."""

    media_type = "text/event-stream"

    def __init__(self, turn: RunningTurn) -> None:
        super().__init__(
            turn.frames(heartbeat_seconds=HEARTBEAT_SECONDS),
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the turn ends or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._turn.stop()


@router.post(
    "/api/chat",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": 'Server-sent events, each `data: {"type", "data"}`.',
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def chat(body: ChatRequest, turns: TurnStarter, caller: Caller) -> EventStream:
    """Answer one question as a stream of events; closing the connection stops the answer."""
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
    return EventStream(turn)
