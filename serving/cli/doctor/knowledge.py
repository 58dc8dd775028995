"""Examines the knowledge base: what there is, and whether a search works."""

import asyncio
import time

from chatbot.bootstrap import open_ports
from chatbot.ports import KnowledgeBase
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note
from serving.cli.doctor.parts import KNOWLEDGE, only
from serving.cli.doctor.values import without_password
from serving.cli.words import in_one_line

PART = "knowledge"
LISTED = 5


async def examine_knowledge(settings: Settings, note: Note) -> None:
    """List the assistants and search in all of them."""
    remote = settings.ragflow_base_url is not None
    async with open_ports(only(settings, *KNOWLEDGE)) as ports:
        knowledge = ports.knowledge
        address = without_password(str(settings.ragflow_base_url))
        if reason := await knowledge.check():
            detail = f"{reason} It is {address}." if remote else reason
            note(Finding(PART, "fail", detail, _advice(remote=remote)))
            return
        if remote:
            note(Finding(PART, "ok", f"RAGFlow answers at {address} and takes the key."))
        else:
            folder = settings.path(settings.knowledge_dir)
            detail = f"RAGFlow is not set: the documents in {folder} are searched."
            note(Finding(PART, "off", detail))
            await _tell_skipped(knowledge, note)
        await asyncio.gather(
            _search(knowledge, settings.passages, note, remote=remote),
            _examine_ragflow(settings, note),
        )


async def _examine_ragflow(settings: Settings, note: Note) -> None:
    address, key = settings.ragflow_base_url, settings.ragflow_api_key
    if address is not None and key is not None:
        from serving.cli.doctor.ragflow import examine_ragflow  # noqa: PLC0415 - heavy

        await examine_ragflow(address, key, settings.knowledge_timeout_seconds, note)


async def _tell_skipped(knowledge: KnowledgeBase, note: Note) -> None:
    from chatbot.knowledge.local.knowledge_base import LocalKnowledgeBase  # noqa: PLC0415

    skipped = await knowledge.skipped() if isinstance(knowledge, LocalKnowledgeBase) else {}
    for name, reason in skipped.items():
        detail = f"{in_one_line(name)} is not searched: {reason}."
        note(
            Finding(
                PART,
                "warn",
                detail,
                "Mend or convert it, or remove it.",
                "files are not searched",
            )
        )


async def _search(knowledge: KnowledgeBase, limit: int, note: Note, *, remote: bool) -> None:
    assistants = await knowledge.assistants()
    names = ", ".join(in_one_line(each.name) for each in assistants[:LISTED])
    more = f" and {len(assistants) - LISTED} more" if len(assistants) > LISTED else ""
    if not assistants:
        note(Finding(PART, "fail", "There is no assistant to ask.", _advice(remote=remote)))
        return
    count = f"{len(assistants)} assistant{'s' if len(assistants) > 1 else ''}"
    note(Finding(PART, "ok", f"{count}: {names}{more}."))
    began = time.perf_counter()
    query = assistants[0].description or assistants[0].name
    found = await knowledge.search(query, assistants=assistants, limit=limit)
    milliseconds = (time.perf_counter() - began) * 1000
    for name, reason in found.failures.items():
        advice = "Look at this assistant in RAGFlow." if remote else ""
        note(Finding(PART, "warn", f"{in_one_line(name)}: {in_one_line(reason)}", advice))
    detail = f"A search took {milliseconds:.0f} ms; passages found: {len(found.passages)}."
    note(Finding(PART, "ok", detail))


def _advice(*, remote: bool) -> str:
    if remote:
        return (
            "Check RAGFLOW_BASE_URL (the address of its API, such as http://host:9380) and "
            "RAGFLOW_API_KEY; in RAGFlow, make a chat assistant with a parsed dataset."
        )
    return "Put Markdown or text files into KNOWLEDGE_DIR, one sub-folder for each assistant."
