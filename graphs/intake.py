"""Checks what a run was given, before anything is done with it."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from chatbot.domain import ANONYMOUS, INTENTS, Intent, Session, Turn, checked_id
from chatbot.errors import InputError
from chatbot.images.blocks import BLOCKS
from chatbot.messages import text_of
from graphs.state import Context

MOST_ASSISTANTS = 20
LONGEST_NAME = 255
LONGEST_INSTRUCTIONS = 20_000
# Under this name in a run's config: names of the only assistants that the user may ask, set by
# whoever knows the user. What a server's client puts there can only take away.
PERMITTED = "permitted_assistants"
KEPT_CHOICES = (
    "assistants",
    "route",
    "language",
    "instructions",
    "timezone",
    "response_schema",
    "model_parameters",
    "stop",
)
PARAMETERS = (
    "frequency_penalty",
    "logit_bias",
    "max_tokens",
    "presence_penalty",
    "seed",
    "temperature",
    "top_k",
    "top_p",
    "user",
)
_ZONE = re.compile(r"[A-Za-z][\w+-]*(/[A-Za-z][\w+-]*){0,3}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """The choices of one run, checked."""

    assistants: Sequence[str] = ()
    route: Intent | None = None
    language: str = ""
    instructions: str = ""
    timezone: str = ""
    replaces: str | None = None
    response_schema: Mapping[str, Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)


def context_of(runtime: Runtime[Context]) -> Context:
    """Return the run's context; a run that was given none has the defaults."""
    given: Context | None = runtime.context
    return Context() if given is None else given


def session_of(runtime: Runtime[Context], default_session_id: str) -> Session:
    """Return whose conversation this is.

    The user is the authenticated one, else the context's; the session is the context's, else
    the thread, else the default.

    Raises:
        InputError: An id is not a plain string of the checked form.
    """
    context = context_of(runtime)
    execution, user = runtime.execution_info, _signed_in(runtime)
    user_id = context.user_id if user is None else user.identity
    session_id = context.session_id
    if session_id is None:
        session_id = (execution and execution.thread_id) or default_session_id
    return Session(session_id=session_id, user_id=ANONYMOUS if user_id is None else user_id)


def permitted_of(runtime: Runtime[Context], config: RunnableConfig) -> frozenset[str] | None:
    """Return the names of the only assistants that may be asked; nothing permits all."""
    user = _signed_in(runtime)
    configurable = config.get("configurable", {})
    names = configurable.get(PERMITTED) if user is None else user.assistants
    return None if names is None else frozenset(map(str, names))


def choices_of(runtime: Runtime[Context]) -> Choices:
    """Return what this run may choose.

    Raises:
        InputError: A choice has the wrong type or is too long.
    """
    context = context_of(runtime)
    assistants = context.assistants if context.assistants is not None else ()
    if (
        not isinstance(assistants, (list, tuple))
        or len(assistants) > MOST_ASSISTANTS
        or not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in assistants)
    ):
        message = f"assistants must be a list of at most {MOST_ASSISTANTS} names."
        raise InputError(message)
    if context.route is not None and context.route not in INTENTS:
        message = f"route must be one of {', '.join(INTENTS)}, or left out."
        raise InputError(message)
    return Choices(
        assistants=tuple(assistants),
        route=context.route,
        language=_text(context.language, "language", LONGEST_NAME),
        instructions=_text(context.instructions, "instructions", LONGEST_INSTRUCTIONS),
        timezone=_zone(context.timezone),
        replaces=None if context.replaces is None else checked_id(context.replaces, "turn id"),
        response_schema=_schema(context.response_schema),
        options=_options(context.model_parameters, context.stop),
    )


def chosen_of(runtime: Runtime[Context]) -> dict[str, Any]:
    """Return what this run chose of how it is answered, as its turn's record keeps it."""
    context = context_of(runtime)
    chosen = {name: getattr(context, name) for name in KEPT_CHOICES}
    return {name: value for name, value in chosen.items() if value is not None}


def chosen_before(turn: Turn, question: str) -> dict[str, Any]:
    """Return what the turn had chosen that also holds for `question`, asked in its place.

    A route was chosen for the turn's own question. The turn's record may come from anywhere.
    """
    chosen = turn.record.get("choices")
    known = chosen if isinstance(chosen, Mapping) else {}
    kept = {name: known[name] for name in KEPT_CHOICES if name in known}
    if question != turn.question:
        kept.pop("route", None)
    return kept


def question_of(messages: Sequence[AnyMessage], turn_id: str) -> str:
    """Return the text of the last message, which must be the user's.

    Only the answer of this very turn may stand behind it, where its run is executed again.

    Raises:
        InputError: There is no question, it is empty, or it is not text alone.
    """
    asked = [message for message in messages if turn_of(message) != turn_id]
    if not asked or not isinstance(asked[-1], HumanMessage):
        message = "The last message must be the user's question."
        raise InputError(message)
    content = asked[-1].content
    blocks = [block for block in content if isinstance(block, dict)]
    kinds = {str(block.get("type")) for block in blocks} - {"text"}
    if other := kinds - BLOCKS:
        message = f"The question may hold text and images, not {other.pop()!r}."
        raise InputError(message)
    question = clean(text_of(content))
    if not question:
        message = "The question is empty: please write what you want to know."
        raise InputError(message)
    return question


def images_of(messages: Sequence[AnyMessage], turn_id: str) -> list[Mapping[str, Any]]:
    """Return the images of the question, as the blocks that they were sent as."""
    asked = [message for message in messages if turn_of(message) != turn_id]
    return [
        block
        for block in asked[-1].content
        if isinstance(block, dict) and str(block.get("type")) in BLOCKS
    ]


def turn_of(message: AnyMessage) -> str | None:
    """Return the id of the turn whose answer the message is, if it is one of ours."""
    turn_id = message.response_metadata.get("turn_id")
    return turn_id if isinstance(message, AIMessage) and isinstance(turn_id, str) else None


def clean(text: str) -> str:
    """Return the text without control characters and halves of characters."""
    return "".join(
        character
        for character in text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if character in "\n\t" or unicodedata.category(character) != "Cc"
    ).strip()


def _signed_in(runtime: Runtime[Context]) -> Any:  # noqa: ANN401 - as the server made it
    """Return the user that a server's authentication found, if users sign in there."""
    server = runtime.server_info
    user = server.user if server else None
    return user if user is not None and user.is_authenticated else None


def _schema(value: Any) -> Mapping[str, Any] | None:  # noqa: ANN401 - unchecked until here
    if value is not None and not isinstance(value, Mapping):
        message = "response_schema must be a JSON Schema: an object."
        raise InputError(message)
    return value


def _options(parameters: Any, stop: Any) -> dict[str, Any]:  # noqa: ANN401 - unchecked
    if parameters is not None and not isinstance(parameters, Mapping):
        message = 'model_parameters must be an object, such as {"temperature": 0.2}.'
        raise InputError(message)
    if unknown := sorted(set(map(str, parameters or {})) - set(PARAMETERS)):
        message = (
            f"model_parameters may not hold {unknown[0]!r}, only: {', '.join(PARAMETERS)}."
        )
        raise InputError(message)
    options = dict(parameters or {})
    if stop is not None:
        words = [stop] if isinstance(stop, str) else stop
        if not isinstance(words, (list, tuple)) or not all(isinstance(w, str) for w in words):
            message = "stop must be a list of words."
            raise InputError(message)
        options["stop"] = list(words)
    return options


def _zone(value: Any) -> str:  # noqa: ANN401 - unchecked until here
    zone = _text(value, "timezone", LONGEST_NAME)
    if zone and not _ZONE.fullmatch(zone):
        message = f"timezone must be an IANA name such as Asia/Shanghai, not {zone!r}."
        raise InputError(message)
    return zone


def _text(value: Any, name: str, longest: int) -> str:  # noqa: ANN401 - unchecked until here
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest:
        message = f"{name} must be a text of at most {longest} characters."
        raise InputError(message)
    return clean(value)
