"""A session as a JSON document that people keep, and that can be read in again."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from chatbot.domain import Session, Turn, TurnStatus
from chatbot.errors import HistoryError, InputError
from chatbot.history.recorded import RECORD
from chatbot.ports import SessionStore
from chatbot.validation import rule_of


class ArchivedTurn(BaseModel):
    """A turn with its audit record."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    question: str
    answer: str = ""
    status: TurnStatus = "complete"
    started_at: AwareDatetime
    record: dict[str, Any] = Field(default_factory=dict)


class Archive(BaseModel):
    """A session with all its turns, oldest first."""

    format: Literal["chatbot-session"] = "chatbot-session"
    version: Literal[1] = 1
    session_id: str
    title: str
    turns: list[ArchivedTurn]


async def export_session(store: SessionStore, session: Session) -> dict[str, Any]:
    """Return the session as plain JSON.

    Raises:
        InputError: There is no such session.
        HistoryError: The session could not be read as a whole.
    """
    await _check(store, "Until then a session may not be exported as a whole.")
    turns = [ArchivedTurn.model_validate(turn) for turn in await store.turns(session)]
    summary = await store.summary(session)  # of what another program wrote it is made only now
    if summary is None:
        message = f"There is no session {session.session_id}."
        raise InputError(message)
    archive = Archive(session_id=session.session_id, title=summary.title, turns=turns)
    return archive.model_dump(mode="json")


async def import_session(
    store: SessionStore, data: object, *, user_id: str, session_id: str | None = None
) -> Session:
    """Make a session of this user from what `export_session` returned, and return it.

    It gets the id it had, or `session_id`. The same document read in twice changes nothing.

    Raises:
        InputError: `data` is something else, or the session exists with other turns.
        HistoryError: The session could not be written, or nobody knows whether it exists.
    """
    archive = _validated(data)
    await _check(store, "Until then nobody knows whether the session is there already.")
    session = Session(session_id=session_id or archive.session_id, user_id=user_id)
    turns = [Turn(**dict(turn)) for turn in archive.turns]
    ids = {turn.id for turn in turns}
    if any(turn.id not in ids for turn in await store.turns(session)):
        message = f"There is a session {session.session_id} already: give another session id."
        raise InputError(message)
    await store.restore(session, archive.title, turns)
    return session


async def _check(store: SessionStore, consequence: str) -> None:
    if degraded := await store.check():
        message = f"{degraded} {consequence}"
        raise HistoryError(message)


def _validated(data: object) -> Archive:
    try:
        archive = Archive.model_validate(data)
        for turn in archive.turns:
            RECORD.validate_python(turn.record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        message = f"This is not an exported session: {place or 'it'}: {rule_of(first)}."
        raise InputError(message) from None
    return archive
