"""Messages that LangChain's class wrote: they get what ours have, and it still reads them."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bson import Int64, ObjectId
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict
from pymongo import UpdateOne

from chatbot.domain import Turn
from chatbot.history.documents import SCHEMA_VERSION, Document, contents
from chatbot.history.entries import EPOCH, Entry, clean_text, even, microseconds

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class Group:
    """A question and the messages up to the next. The first group may have no question."""

    documents: list[Document] = field(default_factory=list)
    question: str | None = None
    answers: list[str] = field(default_factory=list)

    @property
    def turn(self) -> Turn | None:
        """The turn that the messages are, if there is a question."""
        if self.question is None:
            return None
        number = self.documents[0]["_id"]
        return Turn(
            id=str(number),
            question=self.question,
            answer="\n\n".join(self.answers),
            started_at=number.generation_time if isinstance(number, ObjectId) else EPOCH,
            status="complete" if self.answers else "stopped",
        )


def is_foreign(document: Document) -> bool:
    """Tell whether a document was written by LangChain's class and not adopted yet."""
    return document.get("seq") is None


def foreign_ids(turn_id: str) -> Sequence[ObjectId]:
    """Return the id of the document that became this turn, if it may be an adopted one."""
    return [ObjectId(turn_id)] if ObjectId.is_valid(turn_id) else []


def adopted(
    documents: Sequence[Document], user_id: str, *, last_seq: int, now: datetime
) -> tuple[list[Entry], list[UpdateOne]]:
    """Return the turns in these documents, and the writes that make them ours.

    Their places are those of their time, which is known to the second: what was written in
    the second of `last_seq` stands behind it.
    """
    groups = list(_groups(documents))
    turns = [group.turn for group in groups]
    place = 0
    entries: list[Entry] = []
    writes: list[UpdateOne] = []
    for group, turn in zip(groups, turns, strict=True):
        place = max(_place(turn, last_seq), place + 2)
        common = {"user_id": user_id, "kept_at": now, "version": SCHEMA_VERSION}
        common |= {"turn": turn.id, "created_at": turn.started_at} if turn else {"turn": ""}
        for document in group.documents:
            own = common | {"seq": Int64(place + 1)}
            if turn is not None and document is group.documents[0]:
                own = common | {"seq": Int64(place)} | contents(turn)
                entries.append(Entry(turn=turn, seq=place))
            writes.append(UpdateOne({"_id": document["_id"], "seq": None}, {"$set": own}))
    return entries, writes


def _place(turn: Turn | None, last_seq: int) -> int:
    if turn is None:
        return 0
    second = even(microseconds(turn.started_at))
    return last_seq + 2 if second <= last_seq < second + 1_000_000 else second


def _groups(documents: Sequence[Document]) -> Iterator[Group]:
    group = Group()
    for document in documents:
        message = _message(document)
        if isinstance(message, HumanMessage):
            if group.documents:
                yield group
            group = Group(question=clean_text(message.text))
        elif isinstance(message, AIMessage) and message.text:
            group.answers.append(clean_text(message.text))
        group.documents.append(document)
    if group.documents:
        yield group


def _message(document: dict[str, Any]) -> BaseMessage | None:
    try:
        return messages_from_dict([json.loads(document["History"])])[0]
    except (KeyError, TypeError, ValueError):
        _log.warning("message %s cannot be read and is left out", document["_id"])
        return None
