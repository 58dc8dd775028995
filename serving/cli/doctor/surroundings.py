"""Examines what is around the chatbot: prompts, traces, disk."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from chatbot.prompts import Prompts
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note

LITTLE_SPACE = 200 * 2**20  # bytes


async def examine_prompts(settings: Settings, note: Note) -> None:
    """Load the prompts as a turn would."""
    folder = settings.prompts_dir and settings.path(settings.prompts_dir)
    await asyncio.to_thread(Prompts.load, folder)
    detail = f"The files in {folder} replace ours." if folder else "The prompts are ours."
    note(Finding("prompts", "ok", detail))


async def examine_langsmith(settings: Settings, note: Note) -> None:
    """Say whether turns are traced. LangSmith itself is not asked."""
    del settings
    if os.environ.get("LANGSMITH_TRACING", "").lower() not in {"true", "1"}:
        note(Finding("langsmith", "off", "LANGSMITH_TRACING is not true: no traces are sent."))
    elif os.environ.get("LANGSMITH_API_KEY") or os.environ.get("LANGSMITH_ENDPOINT"):
        project = os.environ.get("LANGSMITH_PROJECT") or "default"
        note(Finding("langsmith", "ok", f"Turns are traced into the project {project}."))
    else:
        advice = "Set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false."
        note(Finding("langsmith", "fail", "LANGSMITH_TRACING is on without a key.", advice))


async def examine_disk(settings: Settings, note: Note) -> None:
    """Write a file into the data folder."""
    folder = settings.path(settings.chatbot_data_dir)
    try:
        free = await asyncio.to_thread(_write, folder)
    except OSError as error:
        detail = f"CHATBOT_DATA_DIR={folder} cannot be written: {error.strerror}."
        note(Finding("disk", "fail", detail, "Make it writable, or set another folder."))
        return
    detail = f"{folder} can be written; {free / 2**30:.1f} GiB are free."
    if free < LITTLE_SPACE:
        note(Finding("disk", "warn", detail, "Make room: little is left."))
    else:
        note(Finding("disk", "ok", detail))


def _write(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ok")
    return shutil.disk_usage(folder).free
