"""The nouns that the graph and the adapters share."""

import mimetypes
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self, get_args

from chatbot.errors import InputError

Intent = Literal["knowledge_base", "general_chat"]
Outcome = Literal["found", "empty", "unavailable", "forbidden"]  # of a look-up
TurnStatus = Literal["complete", "stopped", "failed"]
Thumb = Literal["up", "down"]

INTENTS: tuple[Intent, ...] = get_args(Intent)
THUMBS: tuple[Thumb, ...] = get_args(Thumb)
ANONYMOUS = "anonymous"
ID_LENGTH = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def checked_id(value: object, name: str, *, slash: bool = False) -> str:
    """Return `value` if it has the form of an id: short, printable, without white space.

    Ids reach databases, logs and URLs, so anything but such a string is refused. An id without
    slash is part of a path, where clients take `.` and `..` for steps.

    Raises:
        InputError: `value` has another type or form.
    """
    if (
        isinstance(value, str)
        and 0 < len(value) <= ID_LENGTH
        and value.isprintable()
        and not any(character.isspace() for character in value)
        and (slash or ("/" not in value and value not in {".", ".."}))
    ):
        return value
    form = f"1 to {ID_LENGTH} printable characters without white space"
    message = f"The {name} must be {form}{'' if slash else ' or slash, and not . or .. alone'}."
    raise InputError(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """Whose conversation it is, and which one. Both ids are checked when it is made."""

    session_id: str
    user_id: str = ANONYMOUS

    def __post_init__(self) -> None:
        """Refuse ids that are not plain strings of the checked form."""
        checked_id(self.session_id, "session id")
        checked_id(self.user_id, "user id", slash=True)

    @property
    def key(self) -> str:
        """The stored key: the plain session id without users, else user and session.

        An id has no white space, so two different sessions never share a key.
        """
        if self.user_id == ANONYMOUS:
            return self.session_id
        return f"{self.user_id} {self.session_id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One question and what came of it.

    `record` is the audit record, plain JSON: `intent`, `reason`, `query`, `assistants`,
    `passages`, `citations`, `model`, `usage`, `timings` (milliseconds per step), `degraded`,
    `tools`, `finish_reason`, `error`, `trace_id`, `thread_id`; `feedback` (`thumb`,
    `comment`, `at`); and `replaces`, the id of the turn in whose place this one stands.
    """

    id: str
    question: str
    started_at: datetime
    answer: str = ""
    status: TurnStatus = "complete"
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def intent(self) -> Intent | None:
        """What the router decided, where it came that far."""
        intent = self.record.get("intent")
        return intent if intent in INTENTS else None


def in_force(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns that were not replaced, in their order.

    A turn that replaces another takes the place of that one and of all after it, provided it
    has an answer; one that was to replace another and has none is left out itself.
    """
    kept: list[Turn] = []
    until = None
    for turn in reversed(turns):
        replaces = turn.record.get("replaces")
        if until is None and (turn.answer or not replaces):
            kept.append(turn)
            until = replaces
        elif turn.id == until:
            until = replaces if turn.answer else None
    return kept[::-1]


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedHistory:
    """The newest turns of a session, oldest first.

    `degraded` tells people why these turns may not be all there are, or is empty.
    """

    turns: Sequence[Turn] = ()
    degraded: str = ""


def written_place(when: datetime, id_: str) -> str:
    """Return a place in a list by time as programs pass it on."""
    return f"{(when - EPOCH) // MICROSECOND}:{id_}"


def read_place(text: object, what: str, listed: str) -> tuple[datetime, str]:
    """Return the time and the id, not yet checked, that `written_place` wrote as this text.

    Raises:
        InputError: It is no such text; names `what` it should be of, and the list of it.
    """
    number, _, id_ = str(text).partition(":")
    if not re.fullmatch(r"[0-9]{1,17}", number, re.ASCII):
        message = f"This is not the cursor of a {what}, as a list of {listed} gives it."
        raise InputError(message)
    return EPOCH + int(number) * MICROSECOND, id_


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionCursor:
    """The place of a session in a list: the latest first, of the same moment by their ids."""

    last_active: datetime
    session_id: str

    def __str__(self) -> str:
        """Return the cursor as programs pass it on."""
        return written_place(self.last_active, self.session_id)

    @classmethod
    def parse(cls, text: object) -> Self:
        """Return the cursor that was written as this text.

        Raises:
            InputError: It is none.
        """
        last_active, session_id = read_place(text, "session", "sessions")
        return cls(last_active=last_active, session_id=checked_id(session_id, "session id"))


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSummary:
    """A session as a list shows it. `title` is made from its first question."""

    session_id: str
    title: str
    last_active: datetime
    turns: int

    @property
    def cursor(self) -> str:
        """Behind which session the next page of the list begins, if this is the last one."""
        return str(SessionCursor(last_active=self.last_active, session_id=self.session_id))


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A turn that a search found, and the session it is in."""

    session_id: str
    title: str
    turn: Turn


@dataclass(frozen=True, kw_only=True, slots=True)
class Assistant:
    """A part of the knowledge with a name, and what it knows in a sentence or two."""

    id: str
    name: str
    description: str = ""


def permitted(
    assistants: Sequence[Assistant], names: Collection[str] | None
) -> Sequence[Assistant]:
    """Return those assistants that have one of the names, or all where nothing is named."""
    if names is None:
        return assistants
    return [each for each in assistants if each.name in names or each.id in names]


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """A piece of a document. `score` is between 0 and 1, higher is closer to the question.

    `location` is where in the document it stands, in words a person can follow (heading path,
    page), or empty. `url` opens the document, where it has an address.
    """

    id: str
    text: str
    document: str
    document_id: str
    assistant: str
    score: float
    location: str = ""
    url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Passages, the best first, and what their scores were measured by.

    Scores of the same `yardstick` can be compared, others cannot.
    """

    passages: Sequence[Passage] = ()
    yardstick: Hashable = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerPiece:
    """What came next of an assistant's own answer: text, a thought, or what it refers to.

    If `replaces`, the text is the whole answer and takes the place of all that came before. The
    marker `[ID:0]` in it means the first passage.
    """

    text: str = ""
    thought: str = ""
    passages: Sequence[Passage] = ()
    replaces: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A document as it was put in. Its content is not trusted: a page must not run it."""

    name: str
    content: bytes

    @property
    def media_type(self) -> str:
        """What kind of file it is, by its name."""
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """What a search gave: passages, best first, and why parts of the knowledge gave none.

    `failures` maps the name of an assistant that could not be asked to a sentence for people.
    `nearest` names the documents that come closest where no passage is about the question, as
    far as that is known. `uncertain` are passages that match too little to count as found,
    where none matches better: they may answer in other words, as a model can judge. `rankings`
    are what `passages` were made from, where those of several searches make what a search for
    all of that would have given.
    """

    passages: Sequence[Passage] = ()
    uncertain: Sequence[Passage] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    nearest: Sequence[str] = ()
    rankings: Sequence[Ranking] | None = field(default=None, compare=False)

    @property
    def shown(self) -> Sequence[Passage]:
        """The passages that a model is shown."""
        return self.passages or self.uncertain
