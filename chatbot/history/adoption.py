"""Messages that LangChain's class wrote: they get what ours have, and it still reads them."""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bson import Int64, ObjectId
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict
from pymongo import UpdateOne

from chatbot.domain import EPOCH, Turn
from chatbot.history.documents import SCHEMA_VERSION, Document, contents
from chatbot.history.entries import Entry, clean_text, even, microseconds

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class Group:
    """A question and the messages up to the next. The first group may have no question.

    `head` is the question's document where that is adopted already, and its answer is not.
    """

    head: Document | None = None
    documents: list[Document] = field(default_factory=list)
    question: str | None = None
    answers: list[str] = field(default_factory=list)

    @property
    def first(self) -> Document:
        """The first document."""
        return self.documents[0] if self.head is None else self.head

    @property
    def turn(self) -> Turn | None:
        """The turn that the messages are, if there is a question."""
        if self.question is None:
            return None
        number = self.first["_id"]
        return Turn(
            id=str(number),
            question=self.question,
            answer="\n\n".join(self.answers),
            started_at=_written_at(self.first),
            status="complete" if self.answers else "stopped",
        )


def is_foreign(document: Document) -> bool:
    """Tell whether a document was written by LangChain's class and not adopted yet."""
    return document.get("seq") is None


def foreign_ids(turn_id: str) -> Sequence[ObjectId]:
    """Return the id of the document that became this turn, if it may be an adopted one."""
    return [ObjectId(turn_id)] if ObjectId.is_valid(turn_id) else []


def is_theirs(document: Document) -> bool:
    """Tell whether a document was written by LangChain's class, adopted or not."""
    return isinstance(document["_id"], ObjectId)


def foreign_entries(documents: Sequence[Document], *, last_seq: int) -> list[Entry]:
    """Return the turns in documents of LangChain's class, adopted or not, in their places."""
    return [
        Entry(turn=turn, seq=place)
        for group, place in _placed(_groups(documents), last_seq=last_seq, behind=0)
        if (turn := group.turn) is not None
    ]


def adopted(  # noqa: PLR0913 - bound with `partial`
    documents: Sequence[Document],
    user_id: str,
    *,
    last: Document | None,
    last_seq: int,
    is_more: bool,
    now: datetime,
) -> tuple[list[Entry], list[UpdateOne]]:
    """Return the turns in these documents, and the writes that make them ours.

    Their places are those of their time, which is known to the second: what was written in
    the second of `last_seq` stands behind it, and all stand behind `last`, which was adopted
    before; the answer of a question there completes it. Where there are more documents, the
    last turn may not be whole and waits for them.
    """
    head = last if last is not None and _is_unanswered(last) else None
    groups = list(_groups(documents, head))
    if is_more and len(groups) > 1:
        groups.pop()
    behind = even(int(last["seq"])) if last else 0
    behind -= 2 if head else 0  # its own place
    entries: list[Entry] = []
    writes: list[UpdateOne] = []
    for group, place in _placed(groups, last_seq=last_seq, behind=behind):
        turn, whose = group.turn, {"user_id": {"$in": [user_id, None]}}
        common = {"user_id": user_id, "kept_at": now, "version": SCHEMA_VERSION}
        common |= {"turn": turn.id, "created_at": turn.started_at} if turn else {"turn": ""}
        if turn is not None:
            entries.append(Entry(turn=turn, seq=place))
            if group.head is not None:
                where = {"_id": group.head["_id"], "status": "stopped", "answer": ""} | whose
                writes.append(UpdateOne(where, {"$set": contents(turn)}))
        for document in group.documents:
            own = common | {"seq": Int64(place + 1)}
            if turn is not None and document is group.first:
                own = common | {"seq": Int64(place)} | contents(turn)
            where = {"_id": document["_id"], "seq": None} | whose
            writes.append(UpdateOne(where, {"$set": own}))
    return entries, writes


def _is_unanswered(document: Document) -> bool:
    """Tell whether a document is a question that still waits for its answer."""
    found = (document.get("status"), document.get("answer"))
    return "text" in document and found == ("stopped", "")


def _placed(
    groups: Iterable[Group], *, last_seq: int, behind: int
) -> Iterator[tuple[Group, int]]:
    place = behind
    for group in groups:
        seq = group.first.get("seq")
        place = max(_place(group.first, last_seq) if seq is None else int(seq), place + 2)
        yield group, place


def _place(document: Document, last_seq: int) -> int:
    second = even(microseconds(_written_at(document)))
    return last_seq + 2 if second <= last_seq < second + 1_000_000 else second


def _written_at(document: Document) -> datetime:
    number = document["_id"]
    return number.generation_time if isinstance(number, ObjectId) else EPOCH


def _groups(documents: Sequence[Document], head: Document | None = None) -> Iterator[Group]:
    group = Group() if head is None else Group(head=head, question=str(head["text"]))
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
