"""What the graph remembers, what one turn works with, and what one run may choose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from chatbot.domain import Assistant, Intent, Outcome, Passage, Turn
from graphs.turn import LiveTurn


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """What the router decided, and why.

    `question` is the one that stands alone, or "" where the router gave none that is usable.
    `assistants` are those to ask; none means all.
    """

    intent: Intent
    reason: str
    question: str = ""
    assistants: Sequence[Assistant] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatState:
    """The conversation, which is checkpointed, and the work on one turn, which is not."""

    messages: Annotated[Sequence[AnyMessage], add_messages] = ()
    turn: Annotated[LiveTurn | None, UntrackedValue] = None
    history: Annotated[Sequence[Turn], UntrackedValue] = ()
    summary: Annotated[str, UntrackedValue] = ""
    assistants: Annotated[Sequence[Assistant], UntrackedValue] = ()
    route: Annotated[Route | None, UntrackedValue] = None
    respondent: Annotated[Assistant | None, UntrackedValue] = None
    query: Annotated[str, UntrackedValue] = ""
    passages: Annotated[Sequence[Passage], UntrackedValue] = ()
    nearest: Annotated[Sequence[str], UntrackedValue] = ()
    outcome: Annotated[Outcome, UntrackedValue] = "empty"


class ChatUpdate(TypedDict, total=False):
    """The fields of `ChatState` that a node changes."""

    messages: Annotated[Sequence[AnyMessage | RemoveMessage], add_messages]
    turn: Annotated[LiveTurn | None, UntrackedValue]
    history: Annotated[Sequence[Turn], UntrackedValue]
    summary: Annotated[str, UntrackedValue]
    assistants: Annotated[Sequence[Assistant], UntrackedValue]
    route: Annotated[Route | None, UntrackedValue]
    respondent: Annotated[Assistant | None, UntrackedValue]
    query: Annotated[str, UntrackedValue]
    passages: Annotated[Sequence[Passage], UntrackedValue]
    nearest: Annotated[Sequence[str], UntrackedValue]
    outcome: Annotated[Outcome, UntrackedValue]


class ChatInput(TypedDict):
    """What a run is given: the conversation, whose last message is the user's question."""

    messages: Annotated[
        Sequence[AnyMessage],
        Field(description="The question. What was said before is remembered."),
        add_messages,  # LangGraph looks for it in the last place
    ]


class ChatOutput(TypedDict):
    """What a run gives back: the conversation with the answer, and how it was found."""

    messages: Annotated[Sequence[AnyMessage], add_messages]
    route: Annotated[Route | None, UntrackedValue]
    query: Annotated[str, UntrackedValue]
    passages: Annotated[Sequence[Passage], UntrackedValue]
    outcome: Annotated[Outcome, UntrackedValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The choices of one run, plain data.

    The server passes on whatever it was sent, so the first node checks every field.
    """

    session_id: Annotated[
        str | None, Field(description="Which conversation; the thread's own if left out.")
    ] = None
    user_id: Annotated[
        str | None, Field(description="Whose conversation; ignored where users sign in.")
    ] = None
    assistants: Annotated[
        Sequence[str] | None,
        Field(
            description="Names of the only assistants to ask. If all fail, others are chosen."
        ),
    ] = None
    route: Annotated[Intent | None, Field(description="Force one of the two routes.")] = None
    language: Annotated[
        str | None, Field(description="The answer's language; the question's if left out.")
    ] = None
    instructions: Annotated[
        str | None, Field(description="A persona, added to the system prompt.")
    ] = None
    timezone: Annotated[
        str | None, Field(description="The user's time zone, such as Asia/Shanghai.")
    ] = None
    replaces: Annotated[
        str | None, Field(description="Id of the turn to replace, and all after it.")
    ] = None
    response_schema: Annotated[
        Mapping[str, Any] | None, Field(description="A JSON Schema that the answer must fit.")
    ] = None
    model_parameters: Annotated[
        Mapping[str, Any] | None,
        Field(description="Parameters of the answer, such as temperature or max_tokens."),
    ] = None
    stop: Annotated[
        Sequence[str] | None, Field(description="Words at which the model stops.")
    ] = None
