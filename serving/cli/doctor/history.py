"""Examines where the conversations are kept."""

import asyncio
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pymongo.asynchronous.database import AsyncDatabase

from chatbot.bootstrap import open_ports
from chatbot.domain import Session, Turn
from chatbot.history import outbox
from chatbot.history.connection import TASK_SECONDS, deadline, open_client
from chatbot.history.local import LocalChatHistory
from chatbot.history.mongodb import MongoChatHistory
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note
from serving.cli.doctor.parts import only

Database = AsyncDatabase[dict[str, Any]]

PART = "history"
LOCAL_FILE = "history.sqlite3"
EXPIRY = "expireAfterSeconds"
USER = "chatbot-doctor"
CLOCK_SECONDS = 5.0
ANSWER_SECONDS = 2.0
INDEX_TRIES = 10
INDEX_PAUSE = 0.2


async def examine_history(settings: Settings, note: Note) -> None:
    """Write, read and clear a session of its own; in MongoDB also look at the server."""
    if settings.mongodb_uri is None:
        async with open_ports(only(settings)) as ports:
            if reason := await ports.history.check():
                advice = "Make CHATBOT_DATA_DIR a folder that can be written."
                note(Finding(PART, "fail", reason, advice))
                return
        place = settings.data_dir or "memory, until the process ends"
        detail = f"MONGODB_URI is not set: conversations are kept in {place}."
        note(Finding(PART, "off", detail))
    else:
        if (folder := settings.data_dir) is not None:
            await _count_waiting(folder / LOCAL_FILE, note)
        await _examine_mongodb(settings, settings.mongodb_uri.get_secret_value(), note)


async def _count_waiting(file: Path, note: Note) -> None:
    """Tell what was kept on this machine while MongoDB was away, and is still here."""
    waiting = 0
    if await asyncio.to_thread(file.exists):
        async with LocalChatHistory(file) as local:
            waiting = await local.file.read(outbox.size)
    detail = f"Changes that wait on this machine for MongoDB: {waiting}."
    if waiting:
        advice = "They are sent when MongoDB is back and the chatbot runs."
        note(Finding(PART, "warn", detail, advice))
    else:
        note(Finding(PART, "ok", detail))


async def _examine_mongodb(settings: Settings, uri: str, note: Note) -> None:
    client = open_client(uri)
    history = MongoChatHistory(
        client,
        database=settings.mongodb_db,
        collection=settings.mongodb_collection,
        ttl_days=settings.session_ttl_days,
    )
    try:
        async with deadline(ANSWER_SECONDS):
            began = time.perf_counter()
            version = (await client.server_info())["version"]
            milliseconds = (time.perf_counter() - began) * 1000
            hello = await client.admin.command("hello")
        note(Finding(PART, "ok", f"MongoDB {version} answers in {milliseconds:.0f} ms."))
        _compare_clocks(hello["localTime"], note)
        await _write(history, settings, note)
        async with deadline(TASK_SECONDS):
            await _find_expiry(client[settings.mongodb_db], settings, note)
    finally:
        await history.close()
        await client.close()


def _compare_clocks(theirs: datetime, note: Note) -> None:
    apart = (theirs.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()
    detail = f"The clock of MongoDB is {apart:+z.1f} s away from the one of this machine."
    if abs(apart) > CLOCK_SECONDS:
        note(Finding(PART, "warn", detail, "Set both by NTP: sessions expire by these clocks."))
    else:
        note(Finding(PART, "ok", detail))


async def _write(history: MongoChatHistory, settings: Settings, note: Note) -> None:
    session = Session(session_id=f"doctor-{secrets.token_hex(8)}", user_id=USER)
    turn = Turn(id=secrets.token_hex(16), question="?", started_at=datetime.now(UTC))
    place = f"{settings.mongodb_db}.{settings.mongodb_collection}"
    await history.save(session, turn)
    found = await history.find(session, turn.id)
    await history.clear(session)
    if found is None:
        advice = "Read from the primary: remove readPreference from MONGODB_URI."
        note(Finding(PART, "fail", f"What was written into {place} is not found.", advice))
    else:
        note(Finding(PART, "ok", f"{place} can be written and read."))


async def _find_expiry(database: Database, settings: Settings, note: Note) -> None:
    """Look for the index by which sessions expire; the write before started its making."""
    name = f"{settings.mongodb_collection}_sessions"
    for _ in range(INDEX_TRIES):
        indexes = await database[name].index_information()
        lives = [each[EXPIRY] for each in indexes.values() if EXPIRY in each]
        if lives:
            detail = f"Sessions expire {lives[0] / 86400:g} days after their last activity."
            note(Finding(PART, "ok", detail))
            return
        await asyncio.sleep(INDEX_PAUSE)
    advice = "Let the user of MONGODB_URI create indexes (the role readWrite does)."
    note(Finding(PART, "fail", "The index by which sessions expire is not there.", advice))
