"""The images of sessions in MongoDB, a document each; they go with their session."""

from contextlib import suppress
from datetime import UTC, datetime

from pymongo.errors import DuplicateKeyError

from chatbot.domain import Session
from chatbot.history import forgetting
from chatbot.history.connection import IMAGE_SECONDS
from chatbot.history.entries import microseconds
from chatbot.history.mongo_turns import MongoTurns
from chatbot.images.image import Image, named


class MongoImages(MongoTurns):
    """Keeps the images of questions and answers beside the turns."""

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        """See `ImageStore.keep_image`."""
        store, now = self._store, datetime.now(UTC)
        key, stamp = store.key(session), {"created_at": at or now, "kept_at": now}
        where = {"_id": f"{key}/{image.name}", "user_id": session.user_id}
        async with store.reached(IMAGE_SECONDS):
            state = await store.state(session) or {}
            cleared = await forgetting.cleared_at(store, session.user_id)
            if max(state.get("cleared_at") or 0, cleared) >= microseconds(at or now):
                return
            found = await store.images.update_one(where, {"$set": stamp})
            if not found.matched_count:
                made = {**where, "SessionId": key, "name": image.name, "data": image.data}
                with suppress(DuplicateKeyError):  # another turn has just kept it
                    await store.images.insert_one({**made, **stamp})
        self._indexes.want()

    async def find_image(self, user_id: str, name: str) -> Image | None:
        """See `ImageStore.find_image`."""
        where = {"user_id": user_id, "name": name}
        async with self._store.reached(IMAGE_SECONDS):
            found = await self._store.images.find_one(where, {"data": 1})
        return None if found is None else named(name, found["data"])
