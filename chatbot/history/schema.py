"""The version of the documents in MongoDB: refused if later, brought up to date if earlier."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ASCENDING, UpdateOne
from pymongo.asynchronous.collection import AsyncCollection

from chatbot.domain import EPOCH, Turn
from chatbot.errors import ConfigurationError
from chatbot.history.connection import TASK_SECONDS, deadline
from chatbot.history.documents import SCHEMA_VERSION, Document, rating
from chatbot.history.entries import read_record
from chatbot.history.search_words import indexed

Collection = AsyncCollection[dict[str, Any]]

BATCH = 500


class Schema:
    """What version the documents of two collections have.

    Each document has its own; a session has the earliest of its messages. So migrating needs
    no lock: it may stop anywhere, and several processes may do it at once.
    """

    def __init__(self, sessions: Collection, messages: Collection) -> None:
        self._sessions = sessions
        self._messages = messages
        self._checked = False

    async def check(self) -> None:
        """Return if no document is of a later version. Asks the server once.

        Raises:
            ConfigurationError: One is.
        """
        if self._checked:
            return
        later = {"version": {"$gt": SCHEMA_VERSION}}
        if await self._sessions.find_one(later, {"_id": 1}) is not None:
            message = (
                "The conversations in MongoDB were written by a newer version of this program: "
                "update this one, or set MONGODB_COLLECTION to another name."
            )
            raise ConfigurationError(message)
        self._checked = True

    async def migrate(self) -> None:
        """Bring all that is of an earlier version up to date, session by session.

        Raises:
            ConfigurationError: The server refuses the user.
            HistoryError: Not all of it could be written; the next time goes on.
        """
        last = ""
        while True:
            where = {"version": {"$lt": SCHEMA_VERSION}, "_id": {"$gt": last}}
            earlier = self._sessions.find(where, ["user_id", "version"])
            async with deadline(TASK_SECONDS):
                sessions = await earlier.sort("_id", ASCENDING).limit(BATCH).to_list()
            if not sessions:
                return
            last = sessions[-1]["_id"]
            for session in sessions:
                await self._migrate(session)

    async def _migrate(self, session: Document) -> None:
        whose = {"user_id": session["user_id"]}
        earlier = {"SessionId": session["_id"], "version": {"$lt": SCHEMA_VERSION}}
        is_more = True
        while is_more:
            async with deadline(TASK_SECONDS):
                found = self._messages.find(earlier | whose).limit(BATCH)
                documents = await found.to_list()
                writes = await asyncio.to_thread(_migrations, documents)
                if writes:
                    await self._messages.bulk_write(writes, ordered=False)
                is_more = len(documents) == BATCH
        async with deadline(TASK_SECONDS):
            where = {"_id": session["_id"], "version": session["version"]}
            await self._sessions.update_one(
                where | whose, {"$set": {"version": SCHEMA_VERSION}}
            )


def _migrations(documents: Sequence[Document]) -> list[UpdateOne]:
    """Return the writes that bring the documents up to date, unless another one has."""
    writes = []
    for document in documents:
        version = int(document["version"])
        change: Document = {"version": SCHEMA_VERSION}
        for step in STEPS[version - 1 :]:
            change |= step(document)
        where = {name: document[name] for name in ("_id", "user_id", "version")}
        writes.append(UpdateOne(where, {"$set": change}))
    return writes


def _find_by_words(document: Mapping[str, Any]) -> Document:
    """Give a question the words by which its turn is found."""
    question, answer = document.get("text"), document.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str):
        return {}  # an answer, or a question that cannot be read
    turn = Turn(id="", question=question, answer=answer, started_at=EPOCH)
    return {"words": indexed(turn)}


def _find_by_rating(document: Mapping[str, Any]) -> Document:
    """Give a question what its reader thought of the turn."""
    if not isinstance(record := document.get("record"), str):
        return {}
    turn = Turn(id="", question="", started_at=EPOCH, record=read_record(record))
    return rating(turn)


# The first leads from version 1 to version 2, and so on.
STEPS = (_find_by_words, _find_by_rating)
