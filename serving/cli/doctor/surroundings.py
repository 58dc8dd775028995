"""Examines what is around the chatbot: prompts and disk, and switches that do nothing."""

import asyncio
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


async def examine_head_start(settings: Settings, note: Note) -> None:
    """Say where an answer that is to be begun early cannot be."""
    passages = settings.ragflow_base_url is None or settings.ragflow_mode == "retrieval"
    needed = {
        "ROUTE_EARLY=false": settings.route_early,
        "PREFETCH=0": settings.prefetch > 0,
        f"RAGFLOW_MODE={settings.ragflow_mode}": passages,
    }
    missing = [name for name, is_there in needed.items() if not is_there]
    if settings.head_start and missing:
        detail = f"HEAD_START=true does nothing with {' and '.join(missing)}."
        note(Finding("head start", "off", detail))


async def examine_disk(settings: Settings, note: Note) -> None:
    """Write a file into the data folder."""
    folder = settings.data_dir
    if folder is None:
        detail = (
            "CHATBOT_DATA_DIR=:memory: nothing is written. What MongoDB has not got when the "
            "process ends is lost."
        )
        note(Finding("disk", "off", detail))
        return
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
