"""What the graph remembers, what one turn works with, and what one run may choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages

from chatbot.domain import Assistant, Intent, Passage, Turn
from chatbot.messages import Outcome
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
    assistants: Annotated[Sequence[Assistant], UntrackedValue] = ()
    route: Annotated[Route | None, UntrackedValue] = None
    query: Annotated[str, UntrackedValue] = ""
    passages: Annotated[Sequence[Passage], UntrackedValue] = ()
    outcome: Annotated[Outcome, UntrackedValue] = "empty"


class ChatUpdate(TypedDict, total=False):
    """The fields of `ChatState` that a node changes."""

    messages: Annotated[Sequence[AnyMessage], add_messages]
    turn: Annotated[LiveTurn | None, UntrackedValue]
    history: Annotated[Sequence[Turn], UntrackedValue]
    assistants: Annotated[Sequence[Assistant], UntrackedValue]
    route: Annotated[Route | None, UntrackedValue]
    query: Annotated[str, UntrackedValue]
    passages: Annotated[Sequence[Passage], UntrackedValue]
    outcome: Annotated[Outcome, UntrackedValue]


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The choices of one run, plain data. Nobody else checks them, so the first node does.

    `session_id` and `user_id` say whose conversation it is; `assistants` names those to ask;
    `route` forces `knowledge_base` or `general_chat`; `language` is the answer's, such as
    "Chinese"; `instructions` add a persona.
    """

    session_id: Any = None
    user_id: Any = None
    assistants: Any = None
    route: Any = None
    language: Any = None
    instructions: Any = None
