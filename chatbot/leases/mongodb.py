"""Leases between machines, in a collection of MongoDB, by the clock of its server."""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from chatbot.domain import Session, Turn
from chatbot.history.connection import Client, deadline
from chatbot.leases.records import LEASE_SECONDS, busy, read, written

Expression = Mapping[str, Any]
_EXPIRED: Expression = {"$lte": [{"$ifNull": ["$expires_at", "$$NOW"]}, "$$NOW"]}


class MongoLeases:
    """Keeps leases in the collection `<collection>_leases`. The caller owns `client`."""

    def __init__(
        self,
        client: Client,
        *,
        database: str,
        collection: str,
        seconds: float = LEASE_SECONDS,
    ) -> None:
        self._leases = client[database][f"{collection}_leases"]
        self._until: Expression = {"$add": ["$$NOW", int(seconds * 1000)]}

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """See `SessionLeases.claim`."""
        free: Expression = {"$or": [_EXPIRED, {"$eq": ["$turn_id", turn.id]}]}
        mine = {
            "user_id": {"$literal": session.user_id},
            "session_id": {"$literal": session.session_id},
            "turn_id": {"$literal": turn.id},
            "turn": {"$literal": written(turn)},
            "expires_at": self._until,
            "left": {"$cond": [{"$eq": ["$turn_id", turn.id]}, "$left", "$turn"]},
        }
        change = [
            {
                "$set": {
                    name: {"$cond": [free, value, f"${name}"]} for name, value in mine.items()
                }
            }
        ]
        async with deadline():
            kept = await self._upsert(session, change)
        if kept.get("turn_id") != turn.id:
            raise busy()
        return read(kept["left"]) if kept.get("left") else None

    async def renew(self, session: Session, turn: Turn) -> bool:
        """See `SessionLeases.renew`."""
        where = {"_id": session.key, "turn_id": turn.id}
        change = {"turn": {"$literal": written(turn)}, "expires_at": self._until}
        async with deadline():
            result = await self._leases.update_one(where, [{"$set": change}])
        return result.matched_count > 0

    async def release(self, session: Session, turn_id: str) -> None:
        """See `SessionLeases.release`."""
        async with deadline():
            await self._leases.delete_one({"_id": session.key, "turn_id": turn_id})

    async def running(self, session: Session) -> Turn | None:
        """See `SessionLeases.running`."""
        where = {"_id": session.key, "$expr": {"$gt": ["$expires_at", "$$NOW"]}}
        async with deadline():
            kept = await self._leases.find_one(where)
        return read(kept["turn"]) if kept else None

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """See `SessionLeases.abandoned`."""
        async with deadline():
            found = await self._leases.find({"$expr": _EXPIRED}).to_list(limit)
        return [
            (
                Session(user_id=kept["user_id"], session_id=kept["session_id"]),
                read(kept["turn"]),
            )
            for kept in found
        ]

    async def _upsert(
        self, session: Session, change: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        async def once() -> Mapping[str, Any]:
            found = await self._leases.find_one_and_update(
                {"_id": session.key},
                change,
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
            return found or {}

        try:
            return await once()
        except DuplicateKeyError:  # two first claims of a session at once
            return await once()
