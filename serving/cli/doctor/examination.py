"""Examines all services side by side, each before a deadline of its own."""

import asyncio
import importlib
import itertools
import logging
from collections.abc import Mapping, Sequence

from chatbot.errors import ChatbotError
from chatbot.settings import Settings
from serving.cli.doctor.embeddings import examine_embeddings
from serving.cli.doctor.findings import Examination, Finding
from serving.cli.doctor.history import examine_history
from serving.cli.doctor.knowledge import examine_knowledge
from serving.cli.doctor.langsmith import examine_langsmith
from serving.cli.doctor.model import examine_model
from serving.cli.doctor.parts import MODEL, set_fields
from serving.cli.doctor.surroundings import (
    examine_disk,
    examine_head_start,
    examine_prompts,
)
from serving.cli.doctor.tools import examine_tools
from serving.cli.doctor.users import examine_users

CLOSING_SECONDS = 1.0
PATIENCE = 0.8  # of the time, at most

logger = logging.getLogger(__name__)

EXAMINATIONS: Mapping[str, Examination] = {
    "history": examine_history,
    "knowledge": examine_knowledge,
    "embeddings": examine_embeddings,
    "model": examine_model,
    "tools": examine_tools,
    "users": examine_users,
    "prompts": examine_prompts,
    "head start": examine_head_start,
    "langsmith": examine_langsmith,
    "disk": examine_disk,
}
ADVICE = {
    "history": "Start MongoDB, or correct MONGODB_URI. Until then conversations are kept here.",
    "knowledge": "Correct RAGFLOW_BASE_URL and RAGFLOW_API_KEY, or start RAGFlow.",
    "embeddings": "Correct EMBEDDING_BASE_URL and EMBEDDING_MODEL.",
    "users": "Correct AUTH_KEYS_DIR, JWT_SECRET or JWT_JWKS_FILE, or remove it.",
    "prompts": "Correct PROMPTS_DIR, or remove it: the chatbot has prompts of its own.",
    "tools": "Correct the [mcp.<name>] tables in MODELS_FILE.",
    "model": "Correct LLM_MODEL and the address and key of its endpoint.",
}


def load(settings: Settings) -> None:
    """Import what the examinations use: that takes seconds and is nobody's failure."""
    modules = [
        "chatbot.knowledge.local.knowledge_base",
        "chatbot.knowledge.local.opening",
        "chatbot.models.extractive",
    ]
    if settings.ragflow_base_url is not None:
        modules.append("chatbot.knowledge.ragflow.knowledge_base")
    if set_fields(settings, MODEL):
        modules.append("chatbot.models.building")
    for module in modules:
        importlib.import_module(module)


async def examine_services(settings: Settings, *, seconds: float) -> list[Finding]:
    """Return what was found, part after part, within the time, whatever is down."""
    # The knowledge base gives up before that, to say itself what it waited for.
    patience = min(settings.knowledge_timeout_seconds, seconds * PATIENCE)
    settings = settings.model_copy(update={"knowledge_timeout_seconds": patience})
    runs = [_examine(part, run, settings, seconds) for part, run in EXAMINATIONS.items()]
    return list(itertools.chain.from_iterable(await asyncio.gather(*runs)))


async def _examine(
    part: str, run: Examination, settings: Settings, seconds: float
) -> Sequence[Finding]:
    found: list[Finding] = []

    def note(finding: Finding) -> None:
        if finding not in found:
            found.append(finding)

    def fail(detail: str) -> None:
        note(Finding(part, "fail", detail, ADVICE.get(part, "")))

    async def examine() -> None:
        try:
            await run(settings, note)
        except ChatbotError as error:
            fail(error.in_full)
        except Exception as error:  # one part must not hide the others
            logger.exception("the examination of %s failed", part)
            fail(f"The examination itself failed ({type(error).__name__}); see the log.")

    task = asyncio.create_task(examine())
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        note(_late(part, settings, seconds))
        task.cancel()
        await asyncio.wait({task}, timeout=CLOSING_SECONDS)
    return found


def _late(part: str, settings: Settings, seconds: float) -> Finding:
    if part == "knowledge" and settings.ragflow_base_url is None:
        # All documents are read the first time, which breaks nothing.
        detail = f"The documents are still being read after {seconds:.0f} s."
        return Finding(part, "warn", detail, "Ask again in a moment: what was read stays read.")
    return Finding(part, "fail", f"No answer within {seconds:.0f} s.", ADVICE.get(part, ""))
