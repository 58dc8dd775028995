"""Leases between machines, in a collection of MongoDB, by the clock of its server."""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import ReadPreference, ReturnDocument, WriteConcern
from pymongo.errors import DuplicateKeyError

from chatbot.domain import Session, Turn
from chatbot.errors import StoppedError
from chatbot.history.connection import Client, deadline
from chatbot.leases.records import LEASE_SECONDS, busy, read, written

Expression = Mapping[str, Any]
_EXPIRED: Expression = {"$lte": ["$expires_at", "$$NOW"]}
_HOLDER: Expression = {"turn_id": 1, "turn": 1, "expired": _EXPIRED}


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
        # Whatever MONGODB_URI says: who holds a session is not asked of a server that lags.
        kept = client.get_database(
            database,
            read_preference=ReadPreference.PRIMARY,
            write_concern=WriteConcern("majority"),
        )
        self._leases = kept[f"{collection}_leases"]
        self._until: Expression = {"$add": ["$$NOW", int(seconds * 1000)]}

    async def claim(self, session: Session, turn: Turn) -> Turn | None:
        """See `SessionLeases.claim`."""
        async with deadline():
            while not await self._hold(session, turn):
                holder = await self._leases.find_one({"_id": session.key}, _HOLDER)
                if holder is None or holder["turn_id"] == turn.id:
                    continue  # it went, or came, just now
                if not holder["expired"]:
                    raise busy()
                if (left := read(holder["turn"])) is not None:
                    return left
                await self._leases.delete_one(
                    {"_id": session.key, "turn_id": holder["turn_id"]}
                )
        return None

    async def ask_to_stop(self, session: Session) -> bool:
        """See `SessionLeases.ask_to_stop`."""
        where = {"_id": session.key, "$expr": {"$not": _EXPIRED}}
        async with deadline():
            asked = await self._leases.update_one(where, {"$set": {"stop": True}})
        return asked.matched_count > 0

    async def release(self, session: Session, turn_id: str) -> None:
        """See `SessionLeases.release`."""
        async with deadline():
            await self._leases.delete_one({"_id": session.key, "turn_id": turn_id})

    async def running(self, session: Session) -> Turn | None:
        """See `SessionLeases.running`."""
        where = {"_id": session.key, "$expr": {"$not": _EXPIRED}}
        async with deadline():
            found = await self._leases.find_one(where)
        return read(found["turn"]) if found else None

    async def abandoned(self, limit: int) -> Sequence[tuple[Session, Turn]]:
        """See `SessionLeases.abandoned`."""
        async with deadline():
            found = await self._leases.find({"$expr": _EXPIRED}).to_list(limit)
        return [
            (Session(user_id=kept["user_id"], session_id=kept["session_id"]), turn)
            for kept in found
            if (turn := read(kept["turn"])) is not None
        ]

    async def _hold(self, session: Session, turn: Turn) -> bool:
        """Write the lease where there is none or the turn's own; tell whether it has it."""
        where = {"_id": session.key, "turn_id": turn.id}
        lease = {
            "user_id": {"$literal": session.user_id},
            "session_id": {"$literal": session.session_id},
            "turn": {"$literal": written(turn)},
            "expires_at": self._until,
        }
        try:
            held = await self._leases.find_one_and_update(
                where,
                [{"$set": lease}],
                {"stop": 1},
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        except DuplicateKeyError:
            return False
        if held and held.get("stop"):
            raise StoppedError
        return True
